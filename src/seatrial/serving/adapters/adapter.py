"""A LoRA adapter on disk, as PEFT writes it."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seatrial.errors import AdapterRefused, BadInput
from seatrial.files import sha256_of
from seatrial.serving.adapters.tensors import Tensor, TensorFile

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."


@dataclass(frozen=True)
class Adapter:
    directory: Path
    config: dict[str, Any]

    @classmethod
    def read(cls, directory: Path) -> "Adapter":
        """The adapter in `directory`; only its configuration is read here."""
        if not directory.is_dir():
            raise BadInput(
                f"no such adapter directory: {directory}", cure="check the path, or give a hub id org/name"
            )
        try:
            config = json.loads((directory / CONFIG).read_text())
        except FileNotFoundError:
            raise AdapterRefused(
                f"{directory} has no {CONFIG}", cure="name the directory PEFT saved"
            ) from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise AdapterRefused(f"{directory / CONFIG} is broken: {error}") from None
        if not isinstance(config, dict) or config.get("peft_type", "LORA") != "LORA" or "r" not in config:
            raise AdapterRefused(f"{directory / CONFIG} does not describe a LoRA adapter")
        ranks = [config["r"], *(config.get("rank_pattern") or {}).values()]
        if not all(isinstance(rank, int) and rank > 0 for rank in ranks):
            raise AdapterRefused(f"{directory / CONFIG} gives a rank that is no positive number")
        return cls(directory, config)

    @property
    def rank(self) -> int:
        """The largest rank of any of its modules."""
        ranks: list[int] = [self.config["r"], *(self.config.get("rank_pattern") or {}).values()]
        return max(ranks)

    @property
    def base(self) -> str | None:
        """The base model it says it was trained on."""
        return self.config.get("base_model_name_or_path") or None

    @cached_property
    def weights(self) -> TensorFile:
        if not (self.directory / WEIGHTS).exists():
            pickled = (self.directory / "adapter_model.bin").exists()
            raise AdapterRefused(
                f"{self.directory} has no {WEIGHTS}"
                + (", only adapter_model.bin, a pickle that can run code" if pickled else ""),
                cure="save the adapter again with safe_serialization=True"
                if pickled
                else "save it again with PEFT",
            )
        return TensorFile.read(self.directory / WEIGHTS)

    @cached_property
    def digest(self) -> str:
        """What its files hash to: equal digests answer equally."""
        parts = [sha256_of(self.directory / name) for name in (CONFIG, WEIGHTS)]
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def version_of(self, name: str) -> str:
        """The name under which a server knows exactly these weights."""
        return f"{name}@{self.digest[:8]}"

    def modules(self) -> dict[str, dict[str, Tensor]]:
        """Module of the base model to its `A` and `B` matrices."""
        found: dict[str, dict[str, Tensor]] = {}
        for tensor in self.weights.tensors.values():
            for side in ("A", "B"):
                module, matrix, _ = tensor.name.partition(f".lora_{side}.")
                if matrix:
                    found.setdefault(module.removeprefix(PREFIX), {})[side] = tensor
        return found


def alias_of(name: str) -> str:
    """The plain name of a versioned one."""
    return name.partition("@")[0]
