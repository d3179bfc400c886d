"""The names this engine answers to: the base model's, and those of the LoRA adapters loaded into it."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.serving.stub.core.prefix_cache import Adapter
from seatrial.serving.stub.http.refusals import Refused, bad_field, unknown_model


class Models:
    def __init__(self, root: str, names: Sequence[str], max_model_len: int, max_lora_rank: int) -> None:
        assert names
        self.root = root
        self.names = list(names)
        self.max_model_len = max_model_len
        self._max_lora_rank = max_lora_rank
        self._adapters: dict[str, Adapter] = {}

    def find(self, name: str | None) -> tuple[str, Adapter | None]:
        """The name to answer under and the adapter to use; no name means the base model."""
        if not name or name in self.names:
            return self.names[0], None
        if name in self._adapters:
            return name, self._adapters[name]
        raise unknown_model(name, self.names)

    def cards(self) -> list[dict[str, Any]]:
        base = [card(name, self.root, None, self.max_model_len) for name in self.names]
        return base + [card(name, path, self.names[0], None) for name, path in self._adapters.values()]

    def load(self, body: dict[str, Any]) -> str:
        name, path = field(body, "lora_name"), field(body, "lora_path")
        if not name or not path:
            raise invalid("Both 'lora_name' and 'lora_path' must be provided.")
        if name in self.names:
            raise invalid(f"The lora adapter '{name}' conflicts with a served base model.")
        if name in self._adapters and not body.get("load_inplace"):
            raise invalid(
                f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in place, "
                "set 'load_inplace' to True."
            )
        self._check(name, Path(path))
        self._adapters[name] = (name, path)
        return f"Success: LoRA adapter '{name}' added successfully."

    def unload(self, body: dict[str, Any]) -> str:
        name = field(body, "lora_name")
        if not name:
            raise invalid("'lora_name' needs to be provided to unload a LoRA adapter.")
        if name not in self._adapters:
            raise Refused(f"The lora adapter '{name}' cannot be found.", status=404, kind="NotFoundError")
        del self._adapters[name]
        return f"Success: LoRA adapter '{name}' removed successfully."

    def _check(self, name: str, directory: Path) -> None:
        try:
            config = json.loads((directory / "adapter_config.json").read_text())
            rank = max([config["r"], *(config.get("rank_pattern") or {}).values()])
        except OSError:
            # vLLM takes absolute paths out of its messages.
            shown = "<path>" if directory.is_absolute() else directory
            message = f"Loading lora {name} failed: No adapter found for {shown}"
            raise Refused(message, status=404, kind="NotFoundError") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise failed(str(error)) from None
        if rank > self._max_lora_rank:
            raise failed(f"LoRA rank {rank} is greater than max_lora_rank {self._max_lora_rank}.")


def field(body: dict[str, Any], name: str) -> str:
    if name not in body:
        raise bad_field(name, "missing", "Field required")
    if not isinstance(body[name], str):
        raise bad_field(name, "string_type", "Input should be a valid string")
    return str(body[name])


def invalid(message: str) -> Refused:
    return Refused(message, kind="InvalidUserInput")


def failed(reason: str) -> Refused:
    """How vLLM wraps what a worker of its said."""
    message = (
        f"Call to add_lora method failed: Worker failed with error '{reason}', "
        "please check the stack trace above for the root cause"
    )
    return Refused(message, status=500, kind="InternalServerError")


def card(name: str, root: str, parent: str | None, max_model_len: int | None) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "vllm",
        "root": root,
        "parent": parent,
        "max_model_len": max_model_len,
        "permission": [],
    }
