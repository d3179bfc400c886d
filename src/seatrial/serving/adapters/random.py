"""A random adapter for a model: no use but to see adapters work, which is what demos and tests are for."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from seatrial.errors import BadInput
from seatrial.files import write_json
from seatrial.serving.adapters.adapter import CONFIG, PREFIX, WEIGHTS
from seatrial.serving.adapters.tensors import shapes_of_model

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def make_random(
    model: Path,
    directory: Path,
    *,
    seed: int,
    rank: int = 8,
    scale: float = 0.05,
    modules: Sequence[str] = ATTENTION,
) -> Path:
    """Write an adapter of `rank` on `modules` of the model in `model`, with normal values of size `scale`."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

    tensors = {}
    for name, shape in sorted(shapes_of_model(model).items()):
        module = name.removesuffix(".weight")
        if len(shape) == 2 and module.rpartition(".")[2] in modules:
            tensors[f"{PREFIX}{module}.lora_A.weight"] = matrix(rank, shape[1])
            tensors[f"{PREFIX}{module}.lora_B.weight"] = matrix(shape[0], rank)
    if not tensors:
        raise BadInput(f"{model} has no weights of {', '.join(modules)} to adapt")
    directory.mkdir(parents=True, exist_ok=True)
    save_file(tensors, directory / WEIGHTS, metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(model),
        "r": rank,
        "lora_alpha": 2 * rank,
        "lora_dropout": 0.0,
        "target_modules": list(modules),
        "bias": "none",
        "inference_mode": True,
    }
    write_json(directory / CONFIG, config)
    return directory
