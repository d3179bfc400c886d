"""Engines that tests talk to, and how the stand-in is started as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import seatrial

Adapter = tuple[str, Path]
"""A name and a directory."""


@dataclass(frozen=True)
class EngineUnderTest:
    url: str
    model: str
    adapter_a: Adapter
    adapter_b: Adapter


@dataclass(frozen=True)
class StubProcess:
    url: str
    process: subprocess.Popen[str]


def stub_environment(**more: str) -> dict[str, str]:
    """Without what a developer's shell may say to vLLM."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
    return kept | {"PYTHONPATH": str(Path(seatrial.__file__).parents[1])} | more


@contextmanager
def running_stub(*command: str, **variables: str) -> Iterator[StubProcess]:
    """`python -m` these words, once it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True, env=stub_environment(**variables)
    )
    assert process.stdout
    try:
        line = process.stdout.readline()
        assert line.startswith("stub ready on "), line
        yield StubProcess(line.removeprefix("stub ready on ").strip(), process)
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def write_adapter(directory: Path, rank: int = 8) -> Path:
    """As much of an adapter as the stand-in reads."""
    directory.mkdir(parents=True)
    (directory / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": rank}))
    return directory
