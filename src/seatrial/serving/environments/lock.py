"""A lock that whoever makes an environment or a model holds, and the next one waits for and says so."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Lock:
    """Held as long as anyone has its file open: a step's child inherits it, so an installer that outlived a
    killed set-up still keeps the next set-up out."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def note(self, *processes: int) -> None:
        """Write down who works under the lock, for whoever waits."""
        os.ftruncate(self.handle, 0)
        os.pwrite(self.handle, " ".join(map(str, (os.getpid(), *processes))).encode(), 0)


@contextmanager
def locked(path: Path, say: Callable[[str], None]) -> Iterator[Lock]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {holder(os.pread(handle, 100, 0).decode())}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        lock = Lock(handle)
        lock.note()
        yield lock
    finally:
        os.close(handle)


def holder(note: str) -> str:
    """Who holds the lock, from what it noted: the set-up itself, or what a dead one left running."""
    alive = [process for process in note.split() if Path("/proc", process).exists()]
    if not alive:
        return "another set-up"
    if alive[0] == note.split()[0]:
        return f"process {alive[0]}, which is setting it up"
    return f"process {alive[0]}, left over from an interrupted set-up"
