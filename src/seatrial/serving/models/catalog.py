"""What a `model_id` means: one of our own models, a local directory, or a hub id."""

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import BadInput, ConfigError
from seatrial.files import home

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
    if not is_whole(directory):
        directory.mkdir(parents=True, exist_ok=True)
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
    return model_id


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


def names_of(model: str) -> set[str]:
    """Every name that means the same weights as `model`, lower-cased; the last parts of paths and ids too."""
    names = {model}
    directory = local_directory(model)
    for own, entry in OWN_MODELS.items():
        if model == own or model in entry.also_known_as or directory == own_directory(own):
            names |= {own, *entry.also_known_as}
    if directory is not None:
        names |= {str(directory), *_recorded_names(directory)}
    return {name.rstrip("/").lower() for name in names} | {
        name.rstrip("/").split("/")[-1].lower() for name in names
    }


def _recorded_names(directory: Path) -> set[str]:
    try:
        config: dict[str, Any] = json.loads((directory / "config.json").read_text())
    except (OSError, json.JSONDecodeError):
        return set()
    name = config.get("_name_or_path")
    return {name} if isinstance(name, str) and name else set()
