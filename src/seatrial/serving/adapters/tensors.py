"""Safetensors files read by their header: names, shapes and raw bytes, without loading a tensor library."""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import BadInput

HEADER_LIMIT = 100 * 2**20
SIGN_BYTE = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Bytes of a value of each floating type; the last holds the sign."""


@dataclass(frozen=True)
class Tensor:
    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class TensorFile:
    path: Path
    tensors: dict[str, Tensor]

    @classmethod
    def read(cls, path: Path) -> "TensorFile":
        """The file's table, after checking that the file is as long as the table says."""
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                first = file.read(8)
                length = struct.unpack("<Q", first)[0] if len(first) == 8 else HEADER_LIMIT + 1
                if length > min(HEADER_LIMIT, size - 8):
                    raise BadInput(f"{path} is not a whole safetensors file: its header is cut or damaged")
                header: dict[str, Any] = json.loads(file.read(length))
            tensors = dict(_tensors(header, 8 + length))
        except FileNotFoundError:
            raise BadInput(f"no such file: {path}") from None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise BadInput(f"{path} is not a whole safetensors file: its header is damaged") from None
        end = max((tensor.end for tensor in tensors.values()), default=8 + length)
        if size != end:
            raise BadInput(f"{path} is truncated or damaged: {size} bytes, where its header says {end}")
        return cls(path, tensors)

    def is_zero(self, name: str) -> bool:
        """Whether every value of a tensor is zero, of either sign."""
        tensor = self.tensors[name]
        with self.path.open("rb") as file:
            file.seek(tensor.begin)
            data = file.read(tensor.end - tensor.begin)
        if not data.strip(b"\0"):
            return True
        width = SIGN_BYTE.get(tensor.dtype)
        if width is None:
            return False
        others = any(data[offset::width].strip(b"\0") for offset in range(width - 1))
        return not others and set(data[width - 1 :: width]) <= {0x00, 0x80}


def shapes_of_model(directory: Path) -> dict[str, tuple[int, ...]]:
    """The shape of every weight in a model directory, from the headers of its safetensors files."""
    shapes: dict[str, tuple[int, ...]] = {}
    for file in sorted(directory.glob("*.safetensors")):
        shapes |= {tensor.name: tensor.shape for tensor in TensorFile.read(file).tensors.values()}
    return shapes


def _tensors(header: dict[str, Any], base: int) -> Iterator[tuple[str, Tensor]]:
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, Tensor(name, entry["dtype"], tuple(entry["shape"]), base + begin, base + end)
