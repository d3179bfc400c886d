"""Making an environment: once, again, after failures, after changes, two at a time."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from environment_yard import Yard

from seatrial.errors import MissingPart, SetupError
from seatrial.serving.environments.environment import package_path
from seatrial.serving.environments.maker import make
from seatrial.serving.environments.progress import Progress
from seatrial.serving.environments.recipes import Recipe, Step


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def test_steps_run_in_order_and_leave_their_logs(yard: Yard) -> None:
    assert not yard.environment.is_ready()
    yard.make(yard.writes("one"), Step("two", ("-c", "print('hello')")))
    assert yard.environment.is_ready()
    assert yard.journal_lines() == ["one"]
    assert "hello" in (yard.environment.logs / "03-two.log").read_text()
    assert "part: [3/3] two: " in yard.said_so_far()


def test_a_second_call_does_nothing_in_no_time(yard: Yard) -> None:
    yard.make(yard.writes("one"))
    before = yard.environment.record_file.stat().st_mtime_ns
    assert yard.make(yard.writes("one")) < 2
    assert yard.journal_lines() == ["one"]
    assert yard.environment.record_file.stat().st_mtime_ns == before


def test_a_failed_step_says_why_and_the_next_call_continues_there(yard: Yard, tmp_path: Path) -> None:
    cured = tmp_path / "cured"
    code = f"import os, sys; os.path.exists({str(cured)!r}) or sys.exit('No space left on device')"
    steps = yard.writes("one"), Step("two", ("-c", code)), yard.writes("three")
    with pytest.raises(SetupError, match="the step 'two' failed") as caught:
        yard.make(*steps)
    assert "No space left on device" in caught.value.detail
    assert "free disk space" in caught.value.cure
    assert "seatrial setup part" in caught.value.cure
    assert not yard.environment.is_ready()
    cured.touch()
    yard.make(*steps)
    assert yard.journal_lines() == ["one", "three"]


def test_a_changed_file_runs_again_from_the_first_step_that_uses_it(yard: Yard, tmp_path: Path) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text("x==1\n")
    steps = yard.writes("one"), yard.writes("two", pins), yard.writes("three")
    yard.make(*steps)
    pins.write_text("x==2\n")
    yard.make(*steps)
    assert yard.journal_lines() == ["one", "two", "three", "two", "three"]


def test_fresh_rebuilds_from_nothing(yard: Yard) -> None:
    yard.make(yard.writes("one"))
    stray = yard.environment.path / "stray"
    stray.touch()
    yard.make(yard.writes("one"), fresh=True)
    assert not stray.exists()
    assert yard.journal_lines() == ["one", "one"]


def test_another_variant_rebuilds_from_nothing(yard: Yard) -> None:
    yard.make(yard.writes("one"))
    yard.make(yard.writes("one"), variant="cuda")
    assert yard.journal_lines() == ["one", "one"]


def test_an_environment_whose_interpreter_is_gone_is_rebuilt(yard: Yard) -> None:
    yard.make(yard.writes("one"))
    yard.environment.python.unlink()
    yard.environment.python.symlink_to("/nonexistent/python")
    assert not yard.environment.is_ready()
    yard.make(yard.writes("one"))
    assert yard.environment.is_ready()
    assert yard.journal_lines() == ["one", "one"]


def test_no_interpreter_leaves_what_was_there(yard: Yard) -> None:
    yard.make(yard.writes("one"))
    recipe = Recipe("part", "cpu", ("3.1",), ())
    with pytest.raises(MissingPart, match=r"no Python 3\.1") as caught:
        make(yard.environment, recipe, Progress("part", yard.said))
    assert "python3.1-venv" in caught.value.cure
    assert yard.environment.is_ready()


def test_secrets_do_not_reach_a_step(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "77")
    yard.make(Step("show", ("-c", "import json, os; print(json.dumps(dict(os.environ)))")))
    shown = json.loads((yard.environment.logs / "02-show.log").read_text().splitlines()[-1])
    assert not {"OPENAI_API_KEY", "HF_TOKEN", "PYTHONPATH"} & shown.keys()
    assert (shown["PIP_DEFAULT_TIMEOUT"], shown["PIP_NO_INPUT"]) == ("77", "1")


def test_a_set_up_killed_in_mid_step_is_continued(yard: Yard) -> None:
    maker = yard.make_elsewhere()
    yard.wait_until_slow()
    maker.kill()
    maker.communicate()
    assert not yard.environment.is_ready()
    yard.let_go()
    yard.make(*yard.slow_steps())
    assert yard.environment.is_ready()
    assert yard.journal_lines() == ["one", "three"]


def test_an_interrupted_set_up_stops_what_it_started_and_keeps_what_is_done(yard: Yard) -> None:
    maker = yard.make_elsewhere()
    yard.wait_until_slow()
    child = yard.environment.lock_file.read_text().split()[1]
    assert Path("/proc", child).exists()
    maker.send_signal(signal.SIGINT)
    maker.communicate(timeout=30)
    assert not Path("/proc", child).exists()
    recorded = json.loads(yard.environment.record_file.read_text())
    assert [step["name"] for step in recorded["steps"]] == ["one"]


def test_a_set_up_waits_for_another_and_says_for_whom(yard: Yard) -> None:
    first = yard.make_elsewhere()
    yard.wait_until_slow()
    second = yard.make_elsewhere()
    assert second.stderr
    assert second.stderr.readline() == f"part: waiting for process {first.pid}, which is setting it up\n"
    yard.let_go()
    first.communicate(timeout=30)
    second.communicate(timeout=30)
    assert (first.returncode, second.returncode) == (0, 0)
    assert yard.journal_lines() == ["one", "three"]


def test_a_set_up_waits_for_what_a_killed_one_left_running(yard: Yard) -> None:
    first = yard.make_elsewhere()
    yard.wait_until_slow()
    child = yard.environment.lock_file.read_text().split()[1]
    first.kill()
    first.communicate()
    second = yard.make_elsewhere()
    assert second.stderr
    assert f"process {child}, left over from an interrupted set-up" in second.stderr.readline()
    yard.let_go()
    second.communicate(timeout=30)
    assert second.returncode == 0


def test_our_own_modules_run_inside(yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path / "home"))
    yard.make()
    variables = os.environ | {"PYTHONPATH": str(package_path())}
    command = [str(yard.environment.python), "-P", "-m", "seatrial.cli.main", "--version"]
    said = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("seatrial ")
