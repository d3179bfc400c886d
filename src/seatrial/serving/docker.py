"""The Docker engine of this machine, asked before anything is started in it."""

import shutil
import subprocess
from collections.abc import Sequence

from seatrial.errors import BadInput, MissingPart
from seatrial.serving.diagnosis import START_DOCKER

TIMEOUT_SECONDS = 60


def require_docker(containers: Sequence[str]) -> None:
    """Raise unless an engine answers and none of these containers runs: it would be another server's."""
    if shutil.which("docker") is None:
        raise MissingPart(
            "runtime: docker needs the command docker, and it is not installed",
            cure="apt-get install docker.io, or serve with runtime: process",
        )
    command = ["docker", "ps", "--format", "{{.Names}}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise MissingPart(
            f"the Docker engine did not answer within {TIMEOUT_SECONDS} s", cure="restart it"
        ) from None
    if answer.returncode != 0:
        raise MissingPart(f"no Docker engine answers: {answer.stderr.strip()}", cure=START_DOCKER)
    for name in containers:
        if name in answer.stdout.splitlines():
            raise BadInput(
                f"the container {name} already runs, as that of another seatrial serve on the same port",
                cure=f"choose another port with --port, or end it: docker rm --force {name}",
            )
