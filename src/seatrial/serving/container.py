"""An engine in a container instead of a process: the same launch, wrapped in `docker run`. Pure."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.config.serve import ServeConfig
from seatrial.serving.launch import Launch

MODEL = "/seatrial/model"
ADAPTERS = "/seatrial/adapters"
HUB_CACHE = "/root/.cache/huggingface"


def mounted(model: str, adapters: Mapping[str, str]) -> tuple[str, dict[str, str], dict[str, str]]:
    """The model and the adapters as the container sees them, and the mounts that make it so.

    What is a directory here is mounted; a hub id is left for the engine to fetch.
    """
    mounts: dict[str, str] = {}

    def inside(source: str, target: str) -> str:
        if not Path(source).is_dir():
            return source
        mounts[source] = target
        return target

    model = inside(model, MODEL)
    return model, {name: inside(path, f"{ADAPTERS}/{name}") for name, path in adapters.items()}, mounts


def containerized(
    config: ServeConfig,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    *,
    name: str,
    port: int,
    gpus: Sequence[int],
    mounts: Mapping[str, str],
    hub_cache: Path,
    store: Path,
    secrets: Sequence[str],
) -> Launch:
    """`docker run` of one replica. Secrets are passed by name alone, so no command line shows them.

    `store` is mounted where it is: adapters loaded later are named by their place in it.
    """
    docker = config.docker
    words = ["docker", "run", "--rm", "--name", name, "--init", "--ipc", "host", "--network", docker.network]
    if docker.network != "host":
        words += ["--publish", f"{config.host}:{port}:{port}"]
    if gpus:
        words += ["--gpus", json.dumps(f"device={','.join(map(str, gpus))}")]
    for source, target in {**mounts, **docker.mounts, str(store): str(store)}.items():
        words += ["--volume", f"{source}:{target}:ro"]
    words += ["--volume", f"{hub_cache}:{HUB_CACHE}"]
    for variable, value in variables.items():
        # Inside, the container sees only its own GPUs, numbered from zero.
        if variable != "CUDA_VISIBLE_DEVICES":
            words += ["--env", f"{variable}={value}"]
    for secret in secrets:
        words += ["--env", secret]
    words += ["--entrypoint", docker.entrypoint[0], *docker.extra_args, docker.image, *docker.entrypoint[1:]]
    words += _listening_inside(config, arguments)
    return Launch(words, {}, clean=["docker", "rm", "--force", name])


def _listening_inside(config: ServeConfig, arguments: Sequence[str]) -> list[str]:
    """On a network of its own the engine must listen on all of the container's addresses to be published."""
    words = list(arguments)
    if config.docker.network != "host":
        words[words.index("--host") + 1] = "0.0.0.0"  # noqa: S104
    return words
