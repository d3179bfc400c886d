"""The keeper with real processes: whatever happens, nothing of the engine is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from served import is_alive

from seatrial.serving import keeper

# An engine with a child of its own that leaves its session, as vLLM's workers may, and stays when it dies.
ENGINE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(300)
"""
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + ENGINE


def start(
    program: str, grace: float = 5, clean: list[str] | None = None
) -> tuple["subprocess.Popen[str]", int]:
    command = [sys.executable, "-I", "-S", keeper.__file__, str(grace), json.dumps(clean or [])]
    kept = subprocess.Popen(
        [*command, sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert kept.stdout is not None
    return kept, int(kept.stdout.readline())


def wait_gone(pid: int, seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_alive(pid)


def test_a_supervisor_that_vanishes_takes_all_with_it() -> None:
    kept, grandchild = start(ENGINE)
    assert kept.stdin is not None
    kept.stdin.close()  # what the kernel does to the pipe of a process killed with -9
    assert kept.wait(15) == 128 + signal.SIGTERM
    assert wait_gone(grandchild)


def test_a_stubborn_engine_is_killed_after_the_grace() -> None:
    kept, grandchild = start(STUBBORN, grace=0.5)
    kept.terminate()
    assert kept.wait(15) == 128 + signal.SIGKILL
    assert wait_gone(grandchild)


def test_what_a_dead_engine_left_behind_is_ended() -> None:
    kept, grandchild = start(ENGINE)
    [engine, *_] = keeper.descendants(kept.pid)
    os.kill(engine, signal.SIGKILL)
    assert kept.wait(15) == 128 + signal.SIGKILL
    assert wait_gone(grandchild)


def test_an_orphan_of_a_living_engine_leaves_no_zombie() -> None:
    program = "import subprocess, time\n"
    program += "subprocess.run(['sh', '-c', 'sleep 0.5 & echo $!'])\ntime.sleep(300)"
    kept, orphan = start(program)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{orphan}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{orphan}").exists()
    assert kept.poll() is None
    kept.terminate()
    kept.wait(15)


def test_an_engine_dies_with_a_killed_keeper() -> None:
    kept, grandchild = start(ENGINE)
    [engine, *_] = keeper.descendants(kept.pid)
    kept.kill()
    kept.wait()
    assert wait_gone(engine)
    os.kill(grandchild, signal.SIGKILL)  # in service, the supervisor inherits it and does this


def test_the_engines_exit_code_is_passed_on() -> None:
    kept, _ = start("print(0, flush=True); raise SystemExit(7)")
    assert kept.wait(15) == 7


def test_the_clean_command_runs_before_and_after(tmp_path: Path) -> None:
    record = tmp_path / "record"
    kept, _ = start(
        f"print(0); open({str(record)!r}, 'a').write('engine ')",
        clean=["sh", "-c", f"printf 'clean ' >> {record}"],
    )
    kept.wait(15)
    assert record.read_text() == "clean engine clean "


def test_shared_memory_of_killed_processes_is_removed() -> None:
    program = """
import signal, sys, time
from multiprocessing import shared_memory, resource_tracker
signal.signal(signal.SIGTERM, signal.SIG_IGN)
segment = shared_memory.SharedMemory(create=True, size=4096)
resource_tracker.unregister(segment._name, "shared_memory")  # as when the tracker is killed too
print(0, segment.name, flush=True)
time.sleep(300)
"""
    command = [sys.executable, "-I", "-S", keeper.__file__, "0.2", "[]", sys.executable, "-c", program]
    kept = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert kept.stdout is not None
    name = kept.stdout.readline().split()[1]
    assert Path("/dev/shm", name).exists()
    kept.terminate()
    kept.wait(15)
    assert not Path("/dev/shm", name).exists()
