"""An engine in a container instead of a process: the same launch, wrapped in `docker run`."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.config.addresses import bracketed
from seatrial.config.serve import ServeConfig
from seatrial.secrets import is_secret
from seatrial.serving.launch import Launch

MODEL = "/seatrial/model"
PACKAGE = "/seatrial/package"
"""Where our plugin is mounted for engines that need it."""
HUB_CACHE = "/root/.cache/huggingface"


def container_name(port: int) -> str:
    return f"seatrial-{port}"


def mounted(model: str, hub_cache: Path) -> tuple[str, dict[str, str]]:
    """The model as the container sees it, and the mounts (inside to outside) that make it so.

    A directory here is mounted; a hub id is left for the engine to fetch.
    """
    directory = Path(model)
    if not directory.is_dir():
        return model, {}
    if directory.is_relative_to(hub_cache):
        # Its files are links to others of the cache, so it is of use only within the whole.
        return f"{HUB_CACHE}/{directory.relative_to(hub_cache)}", {}
    return MODEL, {MODEL: model}


def containerized(
    config: ServeConfig,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    *,
    port: int,
    gpus: Sequence[str],
    mounts: Mapping[str, str],
    hub_cache: Path,
    store: Path,
    secrets: Sequence[str],
) -> Launch:
    """`docker run` of one replica. Secrets are passed by name alone, so no command line shows them.

    `mounts` are read-only, inside to outside. `store` is mounted where it is: adapters are named by their place
    in it. `secrets` are names of variables in the supervisor's own environment.
    """
    docker, name = config.docker, container_name(port)
    words = ["docker", "run", "--rm", "--name", name, "--init", "--ipc", "host", "--network", docker.network]
    if docker.network != "host":
        words += ["--publish", f"{bracketed(config.host)}:{port}:{port}"]
    if gpus:
        # The quotes are for docker, which would take a bare comma for the end of the value.
        words += ["--gpus", json.dumps(f"device={','.join(gpus)}")]
    for target, source in {**mounts, str(store): str(store)}.items():
        words += ["--mount", _mount(source, target, "readonly")]
    words += ["--mount", _mount(str(hub_cache), HUB_CACHE)]
    # Inside, the container sees only its own GPUs, numbered from zero.
    shown = {key: value for key, value in variables.items() if key != "CUDA_VISIBLE_DEVICES"}
    hidden = {key: shown.pop(key) for key in list(shown) if is_secret(key)}
    for variable, value in shown.items():
        words += ["--env", f"{variable}={value}"]
    for variable in dict.fromkeys([*hidden, *secrets]):
        words += ["--env", variable]
    words += ["--entrypoint", docker.entrypoint[0], *docker.extra_args, docker.image, *docker.entrypoint[1:]]
    words += _listening_inside(config, arguments)
    return Launch(words, hidden, clean=["docker", "rm", "--force", name])


def _mount(source: str, target: str, *more: str) -> str:
    """Unlike `--volume`, this refuses a source that is not there and takes any character in a path."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(["type=bind", f"source={source}", f"target={target}", *more])
    return line.getvalue()


def _listening_inside(config: ServeConfig, arguments: Sequence[str]) -> list[str]:
    """On a network of its own the engine must listen on all of the container's addresses to be published."""
    words = list(arguments)
    if config.docker.network != "host":
        words[words.index("--host") + 1] = "0.0.0.0"  # noqa: S104
    return words
