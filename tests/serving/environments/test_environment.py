"""An environment's place, its readiness, and the folder that carries our package into it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import seatrial
from seatrial.errors import MissingPart
from seatrial.serving.environments.environment import Environment, package_path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_HOME", str(tmp_path))
    return tmp_path


def test_environments_live_under_home(home: Path) -> None:
    assert Environment.named("engine").python == home / "environments" / "engine" / "bin" / "python"


def test_one_that_is_required_and_absent_names_its_command() -> None:
    with pytest.raises(MissingPart) as caught:
        Environment.named("engine").require()
    assert caught.value.cure == "seatrial setup engine"


def test_the_package_path_holds_our_package_and_nothing_else() -> None:
    package, metadata = sorted(package_path().iterdir())
    assert package.resolve() == Path(seatrial.__file__).resolve().parent
    assert metadata.name == f"seatrial-{seatrial.__version__}.dist-info"


def test_another_interpreter_finds_our_plugin_on_the_package_path() -> None:
    program = (
        "from importlib.metadata import entry_points\n"
        "[plugin] = entry_points(group='vllm.general_plugins', name='seatrial')\n"
        "print(plugin.load().__module__)"
    )
    command = [sys.executable, "-S", "-c", program]
    found = subprocess.run(
        command, env={"PYTHONPATH": str(package_path())}, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "seatrial.serving.vllm_plugin"


def test_the_package_path_can_be_made_by_many_at_once() -> None:
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(lambda _: package_path(), range(64)))) == 1
