"""What our commands did to a server's adapters, in order, for the supervisor that may have to do it again.

The supervisor looks at its servers every second. What was loaded just before a crash, or loaded and taken back in
the midst of one, it knows only from here.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from seatrial.serving import registry


def begin(url: str) -> None:
    """Start an empty journal for a server that starts with what its config says."""
    place = _place(url)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("")


def write(url: str, name: str, path: str | None) -> None:
    """Note that `name` now means the adapter at `path`, or nothing; only for servers that have a journal."""
    place = _place(url)
    if place.exists():
        with place.open("a") as journal:
            journal.write(json.dumps({"at": time.time(), "name": name, "path": path}) + "\n")


def since(url: str, moment: float) -> Iterator[tuple[str, str | None]]:
    """What was done after `moment`."""
    place = _place(url)
    if place.exists():
        for line in place.read_text().splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue  # whoever wrote it was killed over it
            if entry["at"] >= moment:
                yield entry["name"], entry["path"]


def end(url: str) -> None:
    _place(url).unlink(missing_ok=True)


def _place(url: str) -> Path:
    return registry.place(url).with_suffix(".adapters")
