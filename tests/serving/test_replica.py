import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import command_line, is_alive

from seatrial.serving import keeper
from seatrial.serving.launch import Launch
from seatrial.serving.replica import Replica

# As vLLM's workers are: in a session of their own, holding the log's pipe, their environment wiped by their title.
ENGINE = """
import subprocess, sys, time
bare = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(300)"
subprocess.Popen([sys.executable, "-c", bare], env={}, start_new_session=True)
time.sleep(300)
"""


@pytest.fixture(autouse=True)
def subreaper() -> Iterator[None]:
    keeper.prctl(keeper.PR_SET_CHILD_SUBREAPER, 1)
    yield
    keeper.prctl(keeper.PR_SET_CHILD_SUBREAPER, 0)


def keeper_of(program: str) -> int:
    """The keeper among our children that runs this program."""
    below = keeper.descendants(os.getpid())
    lines = {pid: command_line(pid) for pid in below}
    return next(
        pid for pid, line in lines.items() if keeper.__file__.encode() in line and program.encode() in line
    )


def test_what_a_killed_keeper_leaves_is_ended_though_it_hides_and_holds_the_log(tmp_path: Path) -> None:
    worker = asyncio.Event()

    async def live() -> tuple[int, list[int]]:
        replica = Replica(
            0,
            Launch([sys.executable, "-c", ENGINE], {}),
            "http://127.0.0.1:9",
            tmp_path / "log",
            say=print,
            echo=lambda line: worker.set(),
        )
        await replica.start()
        await asyncio.wait_for(worker.wait(), 20)
        replica.look()
        kept = keeper_of(ENGINE)
        below = [kept, *keeper.descendants(kept)]
        os.kill(kept, signal.SIGKILL)
        return await asyncio.wait_for(replica.wait_exit(), 20), below

    code, below = asyncio.run(live())
    assert code == -signal.SIGKILL
    assert len(below) == 3
    assert not any(is_alive(pid) for pid in below)
