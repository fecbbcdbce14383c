"""Reading a safetensors file: a header of JSON, then the numbers, mapped into memory and not copied.

Ours, since it is these few lines: the `safetensors` package is a compiled one more. Every number in the header is
checked against the file: it is not trusted before its SHA-256 was compared, and a test's own may be broken.
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LONGEST_HEADER = 1 << 20


class BrokenWeights(ValueError):
    """The file is no safetensors file, or holds something else than was asked for."""


def tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """The float32 tensors of the file, by name, read-only. Raises BrokenWeights, and OSError."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(LONGEST_HEADER, size - 8):
            raise BrokenWeights(f"{path.name} has no readable header")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise BrokenWeights(f"{path.name} has no readable header") from error
    body = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length) if size > 8 + length else np.empty(0, np.uint8)
    found = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry.get("dtype") != "F32":
            continue
        shape, (start, end) = entry["shape"], entry["data_offsets"]
        if not 0 <= start <= end <= len(body) or end - start != 4 * math.prod(shape):
            raise BrokenWeights(f"{path.name} ends before its tensor {name} does")
        found[name] = np.asarray(body)[start:end].view(np.float32).reshape(shape)
    return found
