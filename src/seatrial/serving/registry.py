"""Servers that `seatrial serve` runs on this machine, and what only their starter knows of them.

A server does not tell its max_lora_rank over HTTP, nor a container where its model lies outside of it. So the
supervisor leaves a note while it runs; a note whose process has ended is not believed.
"""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from seatrial.errors import BadInput
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
    place(note.url).parent.mkdir(parents=True, exist_ok=True)
    write_json(place(note.url), asdict(note))


def withdraw(url: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        place(url).unlink()


def lookup(url: str) -> Note | None:
    """The note on a server, if the process that left it still runs."""
    try:
        note = Note(**json.loads(place(url).read_text()))
        os.kill(note.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return note


def live() -> list[Note]:
    """The notes of all servers whose starters still run, by port."""
    notes = [lookup(file.stem) for file in sorted((home() / "servers").glob("*.json"))]
    return [note for note in notes if note is not None]


@contextlib.contextmanager
def claimed(urls: Sequence[str]) -> Iterator[None]:
    """Hold the ports of `urls` against every other `seatrial serve` on this machine.

    An engine listens only when it has loaded its model, and vLLM lets two processes listen on one port: without this,
    a second server would take the first one's answers for its own.
    """
    with contextlib.ExitStack() as stack:
        for url in urls:
            path = place(url).with_suffix(".lock")
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(path.open("a"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BadInput(
                    f"another seatrial serve holds {url}", cure="choose another with --port, or stop that one"
                ) from None
        yield


def place(url_or_name: str) -> Path:
    """By port where the server is on this machine: it has many names there, and the port only one server."""
    name = url_or_name
    if "://" in url_or_name:
        local = is_local(url_or_name)
        port = urlsplit(url_or_name).port
        name = str(port) if local else hashlib.sha256(url_or_name.encode()).hexdigest()[:16]
    return home() / "servers" / f"{name}.json"
