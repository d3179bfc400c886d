"""The keeper: a small process between the supervisor and one engine, so that no engine is ever orphaned.

    keeper.py GRACE_SECONDS CLEAN_JSON COMMAND...

It runs COMMAND in a session of its own and waits. When its standard input closes (the supervisor died, even
by kill -9) or SIGTERM comes, it asks the engine to stop, waits GRACE_SECONDS (less when the supervisor is dead
and nobody waits, none on a second SIGTERM), then kills every descendant that is left: as a child subreaper it
inherits those that the engine itself orphaned. When the engine ends by itself it clears up in the same way.
CLEAN_JSON is a command (a list, possibly empty) that removes what processes cannot hold, such as a container;
it runs before the engine and after. The exit code is the engine's, or 128 + signal.

Only the standard library, and run by path with `python -I -S`: it must start in milliseconds, cost little
memory, and need nothing of ours to work.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

ORPHAN_GRACE_SECONDS = 5.0
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def descendants(ancestor: int) -> list[int]:
    """The live processes below `ancestor`, parents before children."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:  # noqa: PTH123
                state, parent = stat.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            children.setdefault(int(parent), []).append(int(entry))
    found: list[int] = []
    queue = [ancestor]
    while queue:
        below = children.get(queue.pop(0), [])
        found += below
        queue += below
    return found


def parent_of(pid: int) -> int | None:
    """The parent of a process, even of one that has ended and waits for its parent; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
            return int(stat.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


def born(pid: int) -> str | None:
    """When a live process began, in ticks since the machine did; with its number, this means it and no other."""
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def marked(mark: str) -> list[int]:
    """The live processes whose environment began with the variable that `mark` sets, wherever they are now."""
    wanted = mark.encode()
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208
        try:
            with open(f"/proc/{entry}/environ", "rb") as environ:  # noqa: PTH123
                if wanted in environ.read().split(b"\0"):
                    found.append(int(entry))
        except (OSError, ValueError):
            continue
    return found


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def shared_memory_of(pids: list[int]) -> set[str]:
    """The multiprocessing segments that these processes have mapped; killed, they leave them in memory."""
    found: set[str] = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/maps") as maps:  # noqa: PTH123
                words = {line.split()[-1] for line in maps}
        except OSError:
            continue
        found |= {word for word in words if word.startswith(("/dev/shm/psm_", "/dev/shm/sem.mp-"))}  # noqa: S108
    return found


def remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108
    except OSError:
        return


def reap_adopted(engine: int) -> None:
    """Let the ended go whom we have inherited; the engine's own end is left to be asked for."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == engine:
            return
        os.waitpid(ended.si_pid, 0)


def run_quietly(command: list[str]) -> None:
    if command:
        nothing = subprocess.DEVNULL
        try:
            subprocess.run(command, stdin=nothing, stdout=nothing, stderr=nothing, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return  # the engine's own exit code says more than this would


def main() -> int:
    grace, clean, command = float(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
    run_quietly(clean)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    stopping: list[float] = []

    def stop(seconds: float) -> None:
        if not stopping:
            stopping.append(time.monotonic() + seconds)
        else:
            stopping[0] = min(stopping[0], time.monotonic())  # asked twice: now

    signal.signal(signal.SIGTERM, lambda *_: stop(grace))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # The kill on the parent's death covers the one case the keeper cannot: its own kill -9.
    engine = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
    )
    watched = [0, wake_read]
    asked = False
    while engine.poll() is None:
        reap_adopted(engine.pid)
        if stopping and not asked:
            engine.terminate()
            asked = True
        left = stopping[0] - time.monotonic() if stopping else None
        if left is not None and left <= 0:
            break
        ready, _, _ = select.select(watched, [], [], left)
        if wake_read in ready:
            os.read(wake_read, 4096)
        if 0 in ready and not os.read(0, 4096):
            watched.remove(0)
            stop(min(grace, ORPHAN_GRACE_SECONDS))
    shared: set[str] = set()
    for _ in range(100):
        left_over = descendants(os.getpid())
        if not left_over:
            break
        shared |= shared_memory_of(left_over)
        kill_all(left_over)
        time.sleep(0.05)
    for path in shared:
        remove(path)
    code = engine.wait()
    reap_adopted(engine.pid)
    run_quietly(clean)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
