"""The NVIDIA GPUs of this machine, as `nvidia-smi` reports them."""

import subprocess
from dataclasses import dataclass

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
