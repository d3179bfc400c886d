"""What a `model_id` means: one of our own models, a local directory, or a hub id."""

import difflib
import hashlib
import importlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import BadInput, ConfigError
from seatrial.files import home
from seatrial.serving.environments.lock import locked

SAMPLE_BYTES = 2**20
Say = Callable[[str], None]
Maker = Callable[[Path, Say], None]
"""Makes a servable directory of a model of ours; `Say` is told of progress."""


@dataclass(frozen=True)
class OwnModel:
    maker: str
    """Dotted path of its `Maker`, imported when used."""
    also_known_as: tuple[str, ...] = ()
    """Hub ids of the same weights: an adapter trained on one of them fits."""


OWN_MODELS = {
    "smollm2": OwnModel(
        "seatrial.serving.models.smollm2:make",
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "unsloth/SmolLM2-135M-Instruct"),
    ),
    "tiny": OwnModel("seatrial.serving.models.tiny:make"),
}


def own_directory(name: str) -> Path:
    return home() / "models" / name


def is_whole(directory: Path) -> bool:
    """Whether a model directory of ours was finished; its config is written last."""
    return (directory / "config.json").is_file()


def make_own(name: str, say: Say, directory: Path | None = None) -> Path:
    """The directory of one of our models, made now unless it is there."""
    if name not in OWN_MODELS:
        raise BadInput(f"no model of ours is called '{name}'", cure=f"known: {', '.join(sorted(OWN_MODELS))}")
    directory = directory or own_directory(name)
    if is_whole(directory):
        return directory
    directory.mkdir(parents=True, exist_ok=True)
    with locked(directory.with_name(f".{directory.name}.lock"), say):
        if not is_whole(directory):  # else whoever we waited for has made it
            module, function = OWN_MODELS[name].maker.split(":")
            maker: Maker = getattr(importlib.import_module(module), function)
            maker(directory, say)
    return directory


def resolve_model(model_id: str, say: Say, *, make: bool = True) -> str:
    """What the engine is given for `model_id`: a directory, or a hub id as it is.

    A model directory of that name wins over one of our models, as it does in transformers.
    """
    path = Path(model_id).expanduser()
    if path.is_dir() and (model_id not in OWN_MODELS or is_whole(path)):
        if not (path / "config.json").is_file() and not (path / "params.json").is_file():
            raise ConfigError(
                f"model_id: the directory {path} has no config.json", cure="name a model directory"
            )
        return str(path.resolve())
    if model_id in OWN_MODELS:
        return str(make_own(model_id, say) if make else own_directory(model_id))
    if model_id.startswith(("/", "./", "../", "~")) or model_id.count("/") > 1:
        raise ConfigError(
            f"model_id: no such directory: {path}",
            cure=f"a hub id (org/name), an existing directory, or one of {', '.join(sorted(OWN_MODELS))}",
        )
    close = difflib.get_close_matches(model_id, OWN_MODELS, n=1, cutoff=0.8) if "/" not in model_id else []
    if close:
        raise ConfigError(f"model_id: no model '{model_id}'", cure=f"did you mean {close[0]}?")
    return model_id


def hub_cache() -> Path:
    """Where the hub's libraries keep what they fetch."""
    return Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser().resolve()


def local_directory(model: str) -> Path | None:
    """Where the files of a model lie on this machine: its directory, or its snapshot in the hub's cache."""
    path = Path(model).expanduser()
    if path.is_dir():
        return path.resolve()
    if model in OWN_MODELS:
        own = own_directory(model)
        return own if is_whole(own) else None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(model, "config.json")
    except HFValidationError:
        return None
    return Path(found).parent if isinstance(found, str) else None


def same_model(one: str, other: str) -> bool:
    """Whether two names mean the same weights.

    Two directories of this machine are compared by what is in them; a name from elsewhere can be compared only with a
    name, of which the last part counts.
    """
    here, there = local_directory(one), local_directory(other)
    if here is not None and there is not None:
        return here == there or fingerprint(here) == fingerprint(there)
    return bool(names_of(one) & names_of(other))


def fingerprint(directory: Path) -> str:
    """What a model's weights hash to, by the size, the beginning and the end of each file.

    A model fine-tuned from another differs from it in all of its layers, and reading all of a large one takes minutes.
    """
    whole = hashlib.sha256()
    for file in sorted(directory.glob("*.safetensors")):
        size = file.stat().st_size
        with file.open("rb") as content:
            whole.update(f"{file.name} {size}\n".encode() + content.read(SAMPLE_BYTES))
            content.seek(max(0, size - SAMPLE_BYTES))
            whole.update(content.read())
    return whole.hexdigest()


def names_of(model: str) -> set[str]:
    """Every name that means the same weights as `model`, lower-cased; the last parts of paths and ids too."""
    directory = local_directory(model)
    names = {model} | _own_names(model, directory)
    if directory is not None:
        names |= {str(directory), *_recorded_names(directory)}
    return {name.rstrip("/").lower() for name in names} | {
        name.rstrip("/").split("/")[-1].lower() for name in names
    }


def _own_names(model: str, directory: Path | None) -> set[str]:
    """The names of that model of ours which `model`, lying in `directory`, is; none when it is none."""
    for own, entry in OWN_MODELS.items():
        if model == own or model in entry.also_known_as or directory == own_directory(own):
            return {own, *entry.also_known_as}
    return set()


def model_config(directory: Path) -> dict[str, Any]:
    """What a model directory's config.json says; nothing when it cannot be read."""
    try:
        config = json.loads((directory / "config.json").read_text())
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _recorded_names(directory: Path) -> set[str]:
    name = model_config(directory).get("_name_or_path")
    return {name} if isinstance(name, str) and name else set()
