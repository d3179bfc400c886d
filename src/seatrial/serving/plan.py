"""From a configuration to what will be started: everything that can be wrong is found here, before a process is."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.config.addresses import callable_host, url_of
from seatrial.config.serve import ServeConfig
from seatrial.errors import ConfigError
from seatrial.secrets import masked
from seatrial.serving.adapters.adapter import Adapter
from seatrial.serving.adapters.gate import Base, inspect, refuse_failures
from seatrial.serving.adapters.source import adapter_directory, is_hub_id
from seatrial.serving.adapters.store import kept, place_of, store
from seatrial.serving.container import PACKAGE, container_name, containerized, mounted
from seatrial.serving.docker import require_docker
from seatrial.serving.engine import Engine, find_engine
from seatrial.serving.environments.environment import package_path
from seatrial.serving.families import Family, family_of
from seatrial.serving.hardware import available_gpus, memory
from seatrial.serving.launch import Launch, engine_arguments, engine_environment, lora_rank
from seatrial.serving.models.catalog import hub_cache, local_directory, model_config, resolve_model
from seatrial.serving.ports import require_free

NEEDED_SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY")
"""What an engine may have of the user's secrets: the hub's token and its own key."""


@dataclass(frozen=True)
class Plan:
    config: ServeConfig
    model: str
    """What the engine is given: a directory or a hub id."""
    engine: Engine
    launches: list[Launch]
    max_lora_rank: int | None
    versions: dict[str, str]
    """What adapters the servers begin with: each of `lora_modules` by its plain and its versioned name, to its path."""

    @property
    def urls(self) -> list[str]:
        return [url_of(callable_host(self.config.host), port) for port in self.config.ports]

    @property
    def api_key(self) -> str | None:
        """The key that the servers will ask for."""
        return self.config.environment.get("VLLM_API_KEY") or os.environ.get("VLLM_API_KEY")

    def inputs(self) -> dict[str, Path]:
        """The files that decide what is served: the adapters, and the model's own config where it lies here."""
        files = {f"adapter {name}": Path(path) for name, path in self.versions.items() if "@" not in name}
        directory = local_directory(self.model)
        if directory and (directory / "config.json").is_file():
            files["model config"] = directory / "config.json"
        return files

    def resolved(self) -> dict[str, Any]:
        """The configuration as it will be used, for `--json` and `run.json`; secrets hidden."""
        shown: dict[str, Any] = masked(self.config.model_dump(mode="json"))
        return shown | {
            "model": self.model,
            "max_lora_rank": self.max_lora_rank,
            "device": "cpu" if self.engine.cpu else "cuda",
            "urls": self.urls,
            "commands": [launch.shown() for launch in self.launches],
        }


def make_plan(config: ServeConfig, say: Callable[[str], None], *, dry: bool = False) -> Plan:
    """Resolve model, adapters, engine and GPUs. A dry plan needs none of them to be on this machine."""
    docker = config.runtime == "docker"
    if docker and not dry:
        require_docker([container_name(port) for port in config.ports])
        prepare_mounts(config)
    engine = find_engine(config.engine, installed=not (dry or docker))
    model = resolve_model(config.model_id, say, make=not dry)
    adapters, found = resolve_adapters(config, model, dry=dry)
    rank = max((adapter.rank for adapter in found.values()), default=None)
    assigned = assign_gpus(config, available_gpus(), dry=dry) if not engine.cpu else [[]] * config.replicas
    if not dry:
        require_free(config.host, config.ports)
    launches = [
        _launch(config, engine, model, adapters, rank, index, assigned[index])
        for index in range(config.replicas)
    ]
    versions = {adapter.version_of(name): adapters[name] for name, adapter in found.items()}
    limit = lora_rank(config, rank) if config.lora else None
    return Plan(config, model, engine, launches, limit, adapters | versions if versions else {})


def resolve_adapters(
    config: ServeConfig, model: str, *, dry: bool
) -> tuple[dict[str, str], dict[str, Adapter]]:
    """The stored copy of each adapter, after the gate has seen it, and the adapters that were found.

    A dry plan takes what it cannot find here, such as a hub id without a network, as it is written.
    """
    paths: dict[str, str] = {}
    found: dict[str, Adapter] = {}
    limit = lora_rank(config, None) if config.max_lora_rank else None
    for name, source in config.lora_modules.items():
        if dry and is_hub_id(source):
            paths[name] = source
            continue
        adapter = Adapter.read(adapter_directory(source))
        refuse_failures(adapter, inspect(adapter, Base(model, limit)))
        paths[name] = str(place_of(adapter) if dry else kept(adapter))
        found[name] = adapter
    return paths, found


def prepare_mounts(config: ServeConfig) -> None:
    """Make what is mounted into every container: Docker would make it too, as root's."""
    for source in config.docker.mounts:
        if not Path(source).expanduser().exists():
            raise ConfigError(f"docker.mounts: no such directory on this machine: {source}")
    for directory in (store(), hub_cache()):
        directory.mkdir(parents=True, exist_ok=True)


def assign_gpus(config: ServeConfig, available: Sequence[str], *, dry: bool = False) -> list[list[str]]:
    """The GPUs of each replica, `tensor_parallel_size` of them, none given twice."""
    size = config.tensor_parallel_size
    needed = size * config.replicas
    if len(available) < needed:
        if not dry:
            raise ConfigError(
                f"{config.replicas} replicas of tensor_parallel_size {size} need {needed} GPUs, and there are"
                f" {len(available)}",
                cure="lower replicas or tensor_parallel_size, or widen CUDA_VISIBLE_DEVICES",
            )
        available = [str(index) for index in range(needed)]
    return [list(available[start : start + size]) for start in range(0, needed, size)]


def default_cpu_kv_gib(replicas: int) -> int:
    """An eighth of the machine's memory, shared among replicas, between 1 and 8 GiB each."""
    return max(1, min(8, int(memory().total / 2**30 / 8 / replicas)))


def _launch(
    config: ServeConfig,
    engine: Engine,
    model: str,
    adapters: dict[str, str],
    rank: int | None,
    index: int,
    assigned: list[str],
) -> Launch:
    port = config.ports[index]
    family = find_family(config.model_id, model)
    docker = config.runtime == "docker"
    python_path = os.pathsep.join(filter(None, [str(package_path()), os.environ.get("PYTHONPATH")]))
    mounts: dict[str, str] = {}
    if docker:
        model, mounts = mounted(model, hub_cache())
        for source, target in config.docker.mounts.items():
            mounts[target] = str(Path(source).expanduser().resolve())
        # An image has vLLM but not the plugin; the stand-in's image has all of our package.
        plugin = plugin_mounts() if engine.cpu and config.engine.name == "vllm" else {}
        mounts |= plugin
        python_path = PACKAGE if plugin else ""
    arguments = engine_arguments(
        config,
        family=family,
        model=model,
        port=port,
        adapters=adapters,
        adapter_rank=rank,
        cpu=engine.cpu,
    )
    variables = engine_environment(
        config,
        gpus=assigned,
        cpu=engine.cpu,
        cpu_kv_gib=default_cpu_kv_gib(config.replicas),
        python_path=python_path,
    )
    if not docker:
        return Launch([*engine.command(), *arguments], variables)
    return containerized(
        config,
        arguments,
        variables,
        port=port,
        gpus=assigned,
        mounts=mounts,
        hub_cache=hub_cache(),
        store=store(),
        secrets=[name for name in NEEDED_SECRETS if name in os.environ],
    )


def find_family(model_id: str, model: str) -> Family:
    """By the name; a directory of another name says in its config where it came from and what it is."""
    directory = local_directory(model)
    config = model_config(directory) if directory else {}
    return family_of(model_id, str(config.get("_name_or_path", "")), str(config.get("model_type", "")))


def plugin_mounts() -> dict[str, str]:
    """Our package inside a container, with the metadata by which vLLM finds the plugin in it."""
    return {f"{PACKAGE}/{entry.name}": str(entry.resolve()) for entry in sorted(package_path().iterdir())}
