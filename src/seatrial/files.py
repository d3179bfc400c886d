"""Files that are written whole or not at all, and what they hash to."""

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content` so that a reader, or a crash at any moment, sees the old file or the new one."""
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    sync_directory(path.parent)


def write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def sync_directory(path: Path) -> None:
    """Make a rename in `path` survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    """The hash of a file, or of a directory: of its files' names and hashes, hidden files left out."""
    if path.is_dir():
        whole = hashlib.sha256()
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            relative = file.relative_to(path)
            if not any(part.startswith(".") for part in relative.parts):
                whole.update(f"{relative.as_posix()}\0{sha256_of(file)}\n".encode())
        return whole.hexdigest()
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def home() -> Path:
    """Where environments, models and caches live: `SEATRIAL_HOME`, else the user's cache directory."""
    if given := os.environ.get("SEATRIAL_HOME"):
        return Path(given).expanduser().resolve()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "seatrial"
