import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from seatrial.runs import read_events, status_of


@pytest.mark.vllm
def test_the_demo_shows_an_adapter_come_and_go_and_leaves_no_process(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", "demo", "--model", "tiny"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"SEATRIAL_TEST_MARK": mark},
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [run] = (tmp_path / "runs").iterdir()
    assert status_of(run) == "finished"
    answers = next(event for event in read_events(run) if event["event"] == "answers")
    assert answers["base"] != answers["adapter"]
    assert "unloaded it; the server now has: tiny" in done.stdout
    inherited = [
        pid
        for pid in Path("/proc").iterdir()
        if pid.name.isdigit() and mark.encode() in read(pid / "environ")
    ]
    assert not inherited


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
