"""Writing the few kinds of protocol buffer fields that an ONNX graph is made of; nothing is read.

Instead of the `onnx` package, which is 17 MB and would serve one call. https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from collections.abc import Iterable


def varint(value: int) -> bytes:
    """A whole number, 0 or above, seven bits a byte; a negative one as its 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def whole(field: int, value: int) -> bytes:
    """A field that holds a whole number."""
    return varint(field << 3) + varint(value)


def real(field: int, value: float) -> bytes:
    """A field that holds a 32-bit float."""
    return varint(field << 3 | 5) + struct.pack("<f", value)


def part(field: int, content: bytes | str) -> bytes:
    """A field that holds bytes, a text or another message."""
    raw = content.encode() if isinstance(content, str) else content
    return opening(field, len(raw)) + raw


def opening(field: int, length: int) -> bytes:
    """What comes before the `length` bytes of a field's content."""
    return varint(field << 3 | 2) + varint(length)


def wholes(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of whole numbers."""
    return b"".join(whole(field, value) for value in values)
