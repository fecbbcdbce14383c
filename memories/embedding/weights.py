"""Where the numbers lie in a safetensors file: a header of JSON, then the tensors, one after the other.

Ours, since it is these few lines: the `safetensors` package is a compiled one more. The numbers themselves are read
by the runtime, which maps the file. Everything in the header is checked against the file: what is broken must say so.
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

LONGEST_HEADER = 1 << 20


class BrokenWeights(ValueError):
    """The file is no safetensors file, or holds something else than was asked for."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A float32 tensor: its shape, and the bytes of the file that hold it."""

    shape: tuple[int, ...]
    offset: int
    length: int


def tensors(path: Path) -> dict[str, Tensor]:
    """The float32 tensors of the file, by name. Raises BrokenWeights, and OSError."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(LONGEST_HEADER, size - 8):
            raise BrokenWeights(f"{path.name} has no readable header")
        try:
            header = json.loads(file.read(length))
            return {
                name: _tensor(path.name, name, entry, 8 + length, size)
                for name, entry in header.items()
                if name != "__metadata__" and entry["dtype"] == "F32"
            }
        except BrokenWeights:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BrokenWeights(f"{path.name} has no readable header") from error


def _tensor(file: str, name: str, entry: dict[str, list[int]], body: int, size: int) -> Tensor:
    shape, (start, end) = tuple(entry["shape"]), entry["data_offsets"]
    if not 0 <= start <= end <= size - body or end - start != 4 * math.prod(shape):
        raise BrokenWeights(f"{file} ends before its tensor {name} does")
    return Tensor(shape, body + start, end - start)
