"""Our plugin inside vLLM: found by its entry point, called once in each of the engine's processes.

On a CPU, vLLM picks each token's adapter by an index in which -1 means none, and torch reads -1 as the last one
(vLLM pull request 48421). A request to the base that shares a batch with an adapter's request is then answered
with that adapter's changes, silently: any comparison of a base with its adapters on one server would be wrong.
Where the engine has this fault, tokens without an adapter enter the computation as zeros instead.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any

OPERATIONS = ("bgmv_shrink", "bgmv_expand", "bgmv_expand_slice")


def register() -> None:
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        try:
            keep_adapters_to_their_own()
        except (ImportError, AttributeError) as error:
            # A vLLM that is built otherwise: serving without the cure is better than not serving.
            logging.getLogger("vllm.seatrial").warning("cannot look after mixed LoRA batches here: %s", error)


def keep_adapters_to_their_own() -> bool:
    """Mend the operations if they have the fault; returns whether they had it."""
    from vllm.lora.ops import torch_ops
    from vllm.lora.ops.torch_ops import lora_ops
    from vllm.lora.punica_wrapper import punica_cpu

    if not is_faulty(lora_ops.bgmv_shrink):
        return False
    for name in OPERATIONS:
        mended = without_unadapted(getattr(lora_ops, name))
        for module in (lora_ops, torch_ops, punica_cpu):
            if hasattr(module, name):
                setattr(module, name, mended)
    return True


def is_faulty(shrink: Callable[..., None]) -> bool:
    """Whether a token without an adapter is changed by the one adapter there is."""
    import torch

    output = torch.zeros(1, 1)
    shrink(torch.ones(1, 1), torch.ones(1, 1, 1), output, torch.tensor([-1]), 1.0)
    return bool(output.any())


def without_unadapted(operation: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(operation)
    def mended(inputs: Any, weights: Any, output: Any, indices: Any, *more: Any, **named: Any) -> None:
        unadapted = indices < 0
        if unadapted.any():
            inputs = inputs.masked_fill(unadapted[: len(inputs), None], 0)
        operation(inputs, weights, output, indices, *more, **named)

    return mended
