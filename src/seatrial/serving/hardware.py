"""The NVIDIA GPUs and the memory of this machine."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

QUERY = ["nvidia-smi", "--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits"]


@dataclass(frozen=True)
class Gpu:
    index: int
    name: str
    memory_mib: int


def gpus() -> list[Gpu]:
    """Every GPU that works; none where `nvidia-smi` is absent, fails, or does not answer."""
    try:
        answer = subprocess.run(QUERY, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_gpus(answer.stdout) if answer.returncode == 0 else []


def parse_gpus(text: str) -> list[Gpu]:
    found = []
    for line in text.splitlines():
        index, _, rest = line.partition(",")
        name, _, memory = rest.rpartition(",")
        if index.strip().isdigit():
            # Machines that share memory with the CPU report "[N/A]" here.
            mib = int(memory) if memory.strip().isdigit() else 0
            found.append(Gpu(int(index), name.strip(), mib))
    return found


def available_gpus() -> list[str]:
    """The GPUs this process may use, as CUDA_VISIBLE_DEVICES writes them: all, less what that variable hides."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [str(gpu.index) for gpu in gpus()]
    return [word.strip() for word in visible.split(",") if word.strip() and word.strip() != "-1"]


@dataclass(frozen=True)
class Memory:
    total: int
    available: int
    """What a program can still have, caches that would be given up included."""


def memory() -> Memory:
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))
    return Memory(total, available)
