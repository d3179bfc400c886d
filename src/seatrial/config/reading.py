"""Reading a configuration file into its model, with errors that name the place and the nearest known key."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from seatrial.errors import ConfigError


class Config(BaseModel):
    """Base of every configuration: unknown keys are refused, the docstring under a field describes it."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, frozen=True)


Model = TypeVar("Model", bound=Config)


def read_mapping(path: Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise ConfigError(f"no such file: {path}", cure="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    try:
        value = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}:{error.lineno}: broken JSON: {error.msg}") from None
    except ValueError as error:
        # A scalar that looks like a date or a number and is none.
        raise ConfigError(f"{path}: broken YAML: {error}", cure="put that value in quotes") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ConfigError(f"{place}: broken YAML: {getattr(error, 'problem', None) or error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path} holds {_kind(value)} where a mapping of keys to values belongs")
    if odd := _first_odd_key(value):
        raise ConfigError(f"{path}: the key {odd} is not text", cure="put it in quotes")
    return value


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key given twice, where YAML's own readers keep the last silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"'{key.value}' is given twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def validated(model: type[Model], value: Mapping[str, Any], source: str) -> Model:
    """`value` as `model`; what is wrong with it becomes the message."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_faults(model, error)}") from None


def nearest(word: str, known: list[str]) -> str:
    """A hint that names the known word nearest to `word`, or all of them when none is near."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(sorted(known))}"


def _faults(model: type[Config], error: ValidationError) -> str:
    """Everything that is wrong, unknown keys first: a misspelt key often shows as a missing one too."""
    faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    return "; ".join(_fault(model, fault) for fault in faults)


def _fault(model: type[Config], fault: ErrorDetails) -> str:
    place = ".".join(str(part) for part in fault["loc"])
    match fault["type"]:
        case "extra_forbidden":
            known = _keys_at(model, fault["loc"][:-1])
            return f"unknown key '{place}': {nearest(str(fault['loc'][-1]), known)}"
        case "missing":
            return f"the key '{place}' is missing"
        case "value_error":
            reason = fault["msg"].removeprefix("Value error, ")
            return f"{place}: {reason}" if place else reason
        case _:
            return f"{place}: {fault['msg']}, not {fault['input']!r}"


def _keys_at(model: type[Config], place: tuple[int | str, ...]) -> list[str]:
    for part in place:
        field = model.model_fields.get(str(part))
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, Config)):
            return []
        model = inner
    return list(model.model_fields)


def _first_odd_key(value: Any) -> str | None:
    """A key somewhere in `value` that is no string, as YAML makes of `1:` and `on:`."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                return repr(key)
            if odd := _first_odd_key(inner):
                return odd
    elif isinstance(value, list):
        return next(filter(None, map(_first_odd_key, value)), None)
    return None


def _kind(value: Any) -> str:
    return "nothing" if value is None else "a list" if isinstance(value, list) else f"{value!r}"
