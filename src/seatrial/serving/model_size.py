"""How large a model's weights are: from its files where they are here, else from the size in its name."""

import re

from seatrial.serving.models.catalog import local_directory

BYTES_OF = (
    (re.compile(r"fp8|int8|w8a8|8bit", re.IGNORECASE), 1.0),
    (re.compile(r"awq|gptq|int4|w4a16|4bit|nvfp4|mxfp4|gpt-oss", re.IGNORECASE), 0.6),
)
PARAMETERS = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)\s*([BM])(?![A-Za-z0-9])", re.IGNORECASE)


def weight_bytes(model_id: str) -> int | None:
    """Bytes of weights, or None when nothing here tells."""
    directory = local_directory(model_id)
    if directory is not None:
        found = sum(file.stat().st_size for file in directory.glob("*.safetensors"))
        if found:
            return found
    return named_bytes(model_id)


def named_bytes(model_id: str) -> int | None:
    """What the largest `8B` or `135M` in a name comes to, at 2 bytes a weight unless the name says fewer."""
    sizes = [
        float(number) * (1e9 if unit.upper() == "B" else 1e6)
        for number, unit in PARAMETERS.findall(model_id.split("/")[-1])
    ]
    if not sizes:
        return None
    width = next((width for sign, width in BYTES_OF if sign.search(model_id)), 2.0)
    return int(max(sizes) * width)
