"""An environment's place, its readiness, and the folder that carries our package into it."""

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
    entries = list(package_path().iterdir())
    assert [entry.name for entry in entries] == ["seatrial"]
    assert entries[0].resolve() == Path(seatrial.__file__).resolve().parent


def test_the_package_path_can_be_made_by_many_at_once() -> None:
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(lambda _: package_path(), range(64)))) == 1
