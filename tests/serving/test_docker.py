"""What is asked of Docker before anything starts, with scripts in place of the command."""

from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.errors import BadInput, MissingPart
from seatrial.serving.docker import require_docker


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make `docker` do this, and nothing else be installed."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(script: str) -> None:
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "docker").chmod(0o755)

    return write


def test_without_the_command_the_cure_is_to_install_it(docker: Callable[[str], None]) -> None:
    with pytest.raises(MissingPart, match="not installed") as caught:
        require_docker([])
    assert "apt-get install docker.io" in caught.value.cure


def test_without_an_engine_the_clients_words_are_passed_on(docker: Callable[[str], None]) -> None:
    docker("echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    with pytest.raises(MissingPart, match="Cannot connect to the Docker daemon") as caught:
        require_docker([])
    assert "DOCKER_HOST" in caught.value.cure


def test_a_container_of_that_name_is_another_servers(docker: Callable[[str], None]) -> None:
    docker("echo seatrial-80; echo seatrial-8000")
    require_docker(["seatrial-800"])
    with pytest.raises(BadInput, match="seatrial-8000 already runs"):
        require_docker(["seatrial-8000"])
