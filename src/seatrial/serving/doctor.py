"""What this machine has and lacks for the work, each finding with its cure."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from seatrial.config.serve import EngineChoice, ServeConfig
from seatrial.errors import MissingPart
from seatrial.files import home
from seatrial.secrets import is_secret
from seatrial.serving.engine import find_engine
from seatrial.serving.environments.environment import Environment
from seatrial.serving.hardware import Gpu, gpus, memory
from seatrial.serving.limits import COMFORTABLE, LOW
from seatrial.serving.model_size import weight_bytes
from seatrial.serving.models.catalog import hub_cache, local_directory

Level = Literal["ok", "note", "warning"]
GIB = 2**30

DIVERTING = (
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "ANTHROPIC_BASE_URL",
    "HF_ENDPOINT",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)
"""Variables that send clients elsewhere; lower-case forms count too."""
PROVIDERS = (
    "OPENAI",
    "TOGETHER",
    "NEBIUS",
    "ANTHROPIC",
    "OPENROUTER",
    "GROQ",
    "MISTRAL",
    "GEMINI",
    "FIREWORKS",
)
"""Paid services to which a library with a fallback may turn when it finds their key."""


@dataclass(frozen=True)
class Finding:
    subject: str
    level: Level
    text: str
    cure: str = ""


def examine(config: ServeConfig | None = None) -> list[Finding]:
    """Every finding; with a config, also whether this machine can hold its model."""
    present = gpus()
    findings = [
        _gpus(present),
        _engine(),
        *(_environment(name) for name in ("train", "bench")),
        _docker(),
        _namespaces(),
        open_files(resource.getrlimit(resource.RLIMIT_NOFILE)),
        _memory(),
        _disk(),
        *diverting_variables(os.environ),
    ]
    if config is not None:
        findings += _fit(config, present)
    return findings


def _gpus(present: list[Gpu]) -> Finding:
    if not present:
        return Finding("gpu", "note", "no NVIDIA GPU: the engine runs on the CPU, good for small models only")
    names = ", ".join(f"{gpu.name} ({gpu.memory_mib // 1024} GiB)" for gpu in present)
    return Finding("gpu", "ok", f"{len(present)}: {names}")


def _engine() -> Finding:
    try:
        engine = find_engine(EngineChoice())
    except MissingPart as missing:
        return Finding("engine", "note", missing.message, missing.cure)
    return Finding("engine", "ok", f"vLLM in {engine.python}")


def _environment(name: str) -> Finding:
    environment = Environment.named(name)
    if environment.is_ready():
        return Finding(name, "ok", f"set up at {environment.path}")
    return Finding(name, "note", "not set up", f"seatrial setup {name}")


def _docker() -> Finding:
    if shutil.which("docker") is None:
        return Finding(
            "docker",
            "warning",
            "not installed: `runtime: docker` cannot be used",
            "apt-get install docker.io",
        )
    version = _output(["docker", "version", "--format", "{{.Server.Version}}"])
    if not version:
        return Finding(
            "docker",
            "note",
            "the client is there but no engine answers",
            "start dockerd, or join the docker group",
        )
    return Finding("docker", "ok", f"engine {version}")


def _namespaces() -> Finding:
    if shutil.which("unshare") is None:
        return Finding("namespaces", "warning", "no `unshare`", "apt-get install util-linux")
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    if _output(["unshare", *user, "--mount", "--pid", "--fork", "echo", "ok"]) != "ok":
        return Finding(
            "namespaces",
            "warning",
            "this user may not make namespaces: tasks cannot run in the sandbox",
            "run as root, or: sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0",
        )
    return Finding("namespaces", "ok", "mount and PID namespaces can be made")


def open_files(limits: tuple[int, int]) -> Finding:
    soft, hard = limits
    if hard != resource.RLIM_INFINITY and hard < LOW:
        return Finding(
            "open files",
            "warning",
            f"at most {hard}: many clients at a time will fail with 'Too many open files'",
            f"as root: ulimit -Hn {COMFORTABLE}, or LimitNOFILE= in the systemd unit",
        )
    if soft != resource.RLIM_INFINITY and soft < LOW:
        text = f"{soft} (our own commands raise it by themselves; other programs do not)"
        return Finding("open files", "note", text, f"ulimit -n {min(hard, COMFORTABLE)}")
    return Finding("open files", "ok", f"{soft}")


def _memory() -> Finding:
    have = memory()
    level: Level = "ok" if have.total >= 8 * GIB else "warning"
    cure = "" if level == "ok" else "vLLM for CPU wants 8 GiB for a small model"
    return Finding(
        "memory", level, f"{have.total / GIB:.0f} GiB, {have.available / GIB:.0f} GiB available", cure
    )


def _disk() -> Finding:
    free = free_disk(home())
    if free < 10 * GIB:
        return Finding(
            "disk",
            "warning",
            f"{free / GIB:.0f} GiB free where environments and models go ({home()})",
            "free some, or point SEATRIAL_HOME to a larger disk",
        )
    return Finding("disk", "ok", f"{free / GIB:.0f} GiB free at {home()}")


def free_disk(path: Path) -> int:
    """Bytes free where `path` is or will be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free


def diverting_variables(environ: Mapping[str, str]) -> Iterable[Finding]:
    """Variables that could send traffic to another host than the config names. Values are never shown."""
    for name in environ:
        upper = name.upper()
        if upper in DIVERTING:
            text = f"{name} is set: clients that honour it send their traffic elsewhere"
            yield Finding("environment", "warning", text, f"unset {name}, unless it is meant")
        elif is_secret(name) and upper.startswith(PROVIDERS):
            text = f"{name} is set: a library with a fallback may call that paid service"
            yield Finding(
                "environment", "note", text, f"unset {name} where only local servers should be used"
            )


def _fit(config: ServeConfig, present: list[Gpu]) -> Iterable[Finding]:
    needed = weight_bytes(config.model_id)
    if needed is None:
        yield Finding("model", "note", f"the size of {config.model_id} cannot be told from here")
        return
    per_replica = needed * 1.2
    text = f"{config.model_id} has {needed / GIB:.1f} GiB of weights"
    if present and config.engine.device != "cpu":
        have = sum(gpu.memory_mib for gpu in present[: config.tensor_parallel_size]) * 2**20
        have = int(have * (config.gpu_memory_utilization or 0.9))
        place, cure = (
            "GPU memory of one replica",
            "quantize, raise tensor_parallel_size, or take a smaller model",
        )
    else:
        have = memory().available // config.replicas
        place, cure = "memory available to one replica", "take a smaller model or fewer replicas"
    if have < per_replica:
        yield Finding("model", "warning", f"{text}; the {place} is {have / GIB:.1f} GiB", cure)
    else:
        yield Finding("model", "ok", f"{text}; the {place} is {have / GIB:.1f} GiB")
    if local_directory(config.model_id) is None and free_disk(hub_cache()) < needed * 1.1:
        yield Finding(
            "model",
            "warning",
            f"{text}; the disk has {free_disk(hub_cache()) / GIB:.1f} GiB free to fetch it",
            "free some, or point HF_HOME to a larger disk",
        )


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
