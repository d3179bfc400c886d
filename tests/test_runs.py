import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.errors import BadInput, RunInUse
from seatrial.runs import Run, new_run_path, read_events, read_record, status_of

CONFIG = {"model_id": "tiny"}


def test_a_run_records_what_was_asked_and_how_it_ended(tmp_path: Path) -> None:
    config_file = tmp_path / "config.yaml"
    config_file.write_text("model_id: tiny")
    with Run.start(
        tmp_path / "run", "serve", CONFIG, inputs={"config": config_file}, parents=[tmp_path]
    ) as run:
        run.event("healthy", replica=0)
        assert status_of(run.path) == "running"
    record = read_record(tmp_path / "run")
    assert record is not None
    assert record["status"] == "finished"
    assert record["config"] == CONFIG
    assert record["versions"]["seatrial"]
    assert record["parents"] == [str(tmp_path)]
    assert len(record["inputs"]["config"]["sha256"]) == 64
    assert set(record["git"]) == {"tool", "here"}
    [attempt] = record["attempts"]
    assert attempt["started"] <= attempt["ended"]
    assert [event["event"] for event in read_events(tmp_path / "run")] == ["started", "healthy", "ended"]


def test_an_error_and_an_interrupt_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Run.start(tmp_path / "a", "serve", CONFIG):
        _ = 1 / 0
    assert status_of(tmp_path / "a") == "failed"
    with pytest.raises(KeyboardInterrupt), Run.start(tmp_path / "b", "serve", CONFIG):
        raise KeyboardInterrupt
    assert status_of(tmp_path / "b") == "interrupted"


def test_a_directory_in_use_is_locked(tmp_path: Path) -> None:
    with Run.start(tmp_path, "serve", CONFIG), pytest.raises(RunInUse, match=f"process {os.getpid()}"):
        Run.start(tmp_path, "serve", CONFIG)


def test_a_killed_run_is_recognised_and_continued(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from seatrial.runs import Run\n"
        f"run = Run.start(Path(sys.argv[1]), 'serve', {CONFIG!r}); run.event('working')\n"
        "print('started', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert status_of(tmp_path) == "running"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert status_of(tmp_path) == "killed"
    with Run.start(tmp_path, "serve", CONFIG) as run:
        assert [attempt["status"] for attempt in run.record["attempts"]] == ["killed", "running"]
    assert status_of(tmp_path) == "finished"
    assert [event["event"] for event in read_events(tmp_path)] == ["started", "working", "started", "ended"]


def test_another_configuration_does_not_continue_a_run(tmp_path: Path) -> None:
    with Run.start(tmp_path, "serve", CONFIG):
        pass
    with pytest.raises(BadInput, match="another configuration"):
        Run.start(tmp_path, "serve", {"model_id": "other"})
    with Run.start(tmp_path, "serve", CONFIG):
        pass


def test_a_line_that_a_crash_cut_short_is_left_out(tmp_path: Path) -> None:
    cut = '{"event": "naïve'.encode()[:-3]
    (tmp_path / "events.jsonl").write_bytes(json.dumps({"event": "whole"}).encode() + b"\n" + cut)
    assert [event["event"] for event in read_events(tmp_path)] == ["whole"]


def test_a_continued_run_starts_on_a_line_of_its_own(tmp_path: Path) -> None:
    with Run.start(tmp_path, "serve", CONFIG):
        pass
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"event": "cu')
    with Run.start(tmp_path, "serve", CONFIG):
        pass
    assert [event["event"] for event in read_events(tmp_path)][-2:] == ["started", "ended"]


def test_a_directory_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not a run directory"):
        status_of(tmp_path)


def test_run_paths_are_plain_names() -> None:
    assert new_run_path("serve", "a b/../c").name.startswith("serve_a-b-..-c_")
