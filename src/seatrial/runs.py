"""A run directory: what was asked, with what, what happened, and how it ended.

`run.json` holds the resolved configuration, the versions of everything that matters, the state of git, the
hashes of inputs, the parent runs, and one entry an attempt with its start, end and status. `events.jsonl`
only ever grows. The directory is locked while a process works in it. A run whose last attempt says "running"
while nobody holds the lock was killed; starting it again with the same configuration continues it.
"""

import fcntl
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

from seatrial import __version__
from seatrial.errors import BadInput, RunInUse
from seatrial.files import sha256_of, write_json
from seatrial.secrets import masked_words

Status = Literal["running", "finished", "failed", "interrupted", "killed"]


class Run:
    """A run directory held by this process. Use it as a context manager: the way out sets the status."""

    def __init__(self, path: Path, record: dict[str, Any], lock: IO[str]) -> None:
        self.path = path
        self.record = record
        self._lock = lock
        self._events = _open_events(path / "events.jsonl")

    @classmethod
    def start(
        cls,
        path: Path,
        kind: str,
        config: Mapping[str, Any],
        *,
        versions: Mapping[str, str] | None = None,
        inputs: Mapping[str, Path] | None = None,
        parents: Sequence[Path] = (),
    ) -> "Run":
        """Make the run directory, or continue the one that is there if it was made by the same request."""
        path.mkdir(parents=True, exist_ok=True)
        lock = _take_lock(path)
        digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
        record = read_record(path)
        if record is None:
            record = {
                "schema": 1,
                "kind": kind,
                "config": dict(config),
                "config_sha256": digest,
                "inputs": {
                    name: {"path": str(file), "sha256": sha256_of(file)}
                    for name, file in (inputs or {}).items()
                },
                "parents": [str(parent) for parent in parents],
                "attempts": [],
            }
        elif record["kind"] != kind or record["config_sha256"] != digest:
            lock.close()
            differ = sorted(
                key for key in {*config, *record["config"]} if config.get(key) != record["config"].get(key)
            )
            raise BadInput(
                f"{path} holds a {record['kind']} run of another configuration (it differs in {', '.join(differ)})",
                cure="give another run directory, or the configuration in its run.json",
            )
        elif record["status"] == "running":
            record["attempts"][-1] |= {"status": "killed", "ended": None}
        record["versions"] = {
            "seatrial": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **(versions or {}),
        }
        record["git"] = {"tool": git_state(Path(__file__).parent), "here": git_state(Path.cwd())}
        record["attempts"].append(
            {
                "started": now(),
                "ended": None,
                "status": "running",
                "pid": os.getpid(),
                "command": masked_words(sys.argv),
            }
        )
        record["status"] = "running"
        run = cls(path, record, lock)
        run._save()
        run.event("started", attempt=len(record["attempts"]))
        return run

    def event(self, name: str, **fields: Any) -> None:
        """Append one line to `events.jsonl`, in one write."""
        line = json.dumps({"ts_unix": round(time.time(), 3), "event": name, **fields}, ensure_ascii=False)
        os.write(self._events, line.encode() + b"\n")

    def end(self, status: Status, **fields: Any) -> None:
        """Write the status and let go of the directory, which happens even on a full disk."""
        self.record["attempts"][-1] |= {"ended": now(), "status": status}
        self.record["status"] = status
        try:
            self.event("ended", status=status, **fields)
            os.fsync(self._events)
            self._save()
        finally:
            os.close(self._events)
            self._lock.close()

    def _save(self) -> None:
        write_json(self.path / "run.json", self.record)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock.closed:
            return
        if error is None:
            self.end("finished")
        elif isinstance(error, KeyboardInterrupt):
            self.end("interrupted")
        else:
            self.end("failed", error=str(error) or type(error).__name__)


def read_record(path: Path) -> dict[str, Any] | None:
    """What `run.json` says, or None when there is none."""
    try:
        record: dict[str, Any] = json.loads((path / "run.json").read_text())
    except FileNotFoundError:
        return None
    return record


def status_of(path: Path) -> Status:
    """The status of a run as it is now: "killed" when it says running and nobody holds it."""
    record = read_record(path)
    if record is None:
        raise BadInput(f"{path} is not a run directory", cure="name a directory that holds a run.json")
    status: Status = record["status"]
    if status != "running":
        return status
    try:
        _take_lock(path, fcntl.LOCK_SH).close()
    except RunInUse:
        return "running"
    return "killed"


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a run; a last line that a crash cut short is left out."""
    events = path / "events.jsonl"
    if not events.exists():
        return
    with events.open(errors="replace") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def new_run_path(kind: str, name: str, base: Path = Path("runs")) -> Path:
    """A directory that is not there yet for a new run under `base`, named by kind, subject and time."""
    plain = "".join(c if c.isalnum() or c in "-._" else "-" for c in name).strip("-.")
    path = base / f"{kind}_{plain or 'run'}_{datetime.now().strftime('%Y%m%d_%H%M%S')}"
    return path if not path.exists() else path.with_name(f"{path.name}_{os.getpid()}")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def git_state(directory: Path) -> dict[str, Any] | None:
    """The commit that `directory` is on and whether the work tree differs from it; None outside git."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(directory), *words], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None


def _open_events(path: Path) -> int:
    """Open for appending, on a line of its own even if a crash cut the last one short."""
    events = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    size = os.fstat(events).st_size
    if size and os.pread(events, 1, size - 1) != b"\n":
        os.write(events, b"\n")
    return events


def _take_lock(path: Path, kind: int = fcntl.LOCK_EX) -> IO[str]:
    lock = (path / "run.lock").open("a+")
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        record = read_record(path)
        holder = record["attempts"][-1]["pid"] if record and record["attempts"] else "unknown"
        raise RunInUse(
            f"{path} is in use by process {holder}",
            cure="wait for it or stop it, or give another run directory",
        ) from None
    return lock
