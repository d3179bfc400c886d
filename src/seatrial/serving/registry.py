"""Servers that `seatrial serve` runs on this machine, and what only their starter knows of them.

A server does not tell its max_lora_rank over HTTP, nor a container where its model lies outside of it. So the
supervisor leaves a note while it runs; a note whose process has ended is not believed.
"""

import contextlib
import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from seatrial.files import home, write_json
from seatrial.serving.client import is_local


@dataclass(frozen=True)
class Note:
    url: str
    pid: int
    model: str
    """The directory or hub id of the base."""
    max_lora_rank: int | None
    run: str
    """The run directory of the supervisor."""


def announce(note: Note) -> None:
    _place(note.url).parent.mkdir(parents=True, exist_ok=True)
    write_json(_place(note.url), asdict(note))


def withdraw(url: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        _place(url).unlink()


def lookup(url: str) -> Note | None:
    """The note on a server, if the process that left it still runs."""
    try:
        note = Note(**json.loads(_place(url).read_text()))
        os.kill(note.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return note


def _place(url: str) -> Path:
    """By port where the server is on this machine: it has many names there, and the port only one server."""
    port = urlsplit(url).port
    name = str(port) if is_local(url) else hashlib.sha256(url.encode()).hexdigest()[:16]
    return home() / "servers" / f"{name}.json"
