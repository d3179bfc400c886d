"""A pool of endpoints: which servers serve which model (`model_config_*.json`)."""

from pathlib import Path
from typing import Any

from pydantic import Field

from seatrial.config.addresses import url_of
from seatrial.config.reading import Config, read_mapping, validated
from seatrial.errors import ConfigError

RETRIEVAL = ("retrieval", "wiki_retrieval")
"""Names in a pool that stand for retrieval services, which speak another protocol than models."""


class Endpoint(Config):
    ip_addr: str = Field(min_length=1)
    """A host name or an address."""
    port: int = Field(ge=1, le=65535)
    process_num: int | None = None
    """Kept for files that carry it; not used."""

    @property
    def url(self) -> str:
        return url_of(self.ip_addr, self.port)


Pool = dict[str, list[Endpoint]]


def read_pool(path: Path) -> Pool:
    """Model to its endpoints, in the file's order. Keys that begin with `_` are comments."""
    value = read_mapping(path)
    pool: Pool = {}
    for model, entries in value.items():
        if model.startswith("_"):
            continue
        if not isinstance(entries, list) or not entries:
            raise ConfigError(f"{path}: '{model}' must have a list of {{ip_addr, port}}, with at least one")
        pool[model] = [_endpoint(entry, f"{path}: {model}[{i}]") for i, entry in enumerate(entries)]
    if not pool:
        raise ConfigError(f"{path} names no model", cure="add entries: {model: [{ip_addr, port}]}")
    return pool


def _endpoint(entry: Any, source: str) -> Endpoint:
    if not isinstance(entry, dict):
        raise ConfigError(f"{source} must be {{ip_addr, port}}, not {entry!r}")
    return validated(Endpoint, {k: v for k, v in entry.items() if not k.startswith("_")}, source)
