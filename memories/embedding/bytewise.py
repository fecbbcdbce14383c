"""The encoder of `graph` with its matrices in bytes: half the time for a short text, a quarter of the memory.

A query waits for 42 MB of weights to come from memory, not for arithmetic; in bytes they are 11 MB. They are made of
the published floats at each load (0.07 s), so nothing is stored that could be wrong. Knows no tokens and no session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from memories.embedding.graph import (
    EPSILON,
    FLOAT,
    INT8,
    INT32,
    MASK,
    RUNTIME,
    UINT8,
    Shape,
    Writer,
    embeddings,
    whole_model,
)
from memories.embedding.weights import Tensor

Floats = NDArray[np.float32]

QUIETER = 4.0
"""What a loud channel is divided by, and its weights multiplied with: a power of two, so no digit changes."""

LOWEST_GELU = 0.17
"""Added to what GELU gives, which is never below -0.16998: so all 256 steps serve. Its share is taken off the bias."""


@dataclass(frozen=True, slots=True)
class Bytewise:
    """What a model needs to run in bytes.

    `loud` are the channels of its hidden state that are ten times the others (attention's sinks): in one row with
    them, the others would have a few steps of the 255 each. `probe` is a text, `expected` the first numbers of its
    vector by the published floats: another processor's arithmetic has to come `near` them (root mean square).
    """

    loud: tuple[int, ...] = ()
    probe: str = ""
    expected: tuple[float, ...] = ()
    near: float = 0.005

    def holds(self, vector: Floats) -> bool:
        """Whether `vector`, of length 1, is what the probe should give."""
        if not self.expected:
            return True
        apart = vector[: len(self.expected)] - np.array(self.expected, dtype=np.float32)
        return bool(np.sqrt(np.mean(apart**2)) < self.near)


@dataclass(frozen=True, slots=True)
class _Graph:
    """The graph while it is written, and the floats it is made of."""

    to: Writer
    file: BinaryIO
    weights: Mapping[str, Tensor]
    loud: tuple[int, ...]

    def floats(self, name: str) -> Floats:
        where = self.weights[name]
        self.file.seek(where.offset)
        return np.fromfile(self.file, dtype="<f4", count=where.length // 4).reshape(where.shape)

    def dense(self, rows: str, modules: Sequence[str], *, shifted: bool = False, quieter: bool = False) -> list[str]:
        """rows · weightᵀ of these modules side by side, and the name of their biases, which are not added yet.

        Each row of `rows` has a step of its own (its largest number is 127, or 255 when `shifted`), each row of a
        weight as well: so a text's vector does not depend on what else is in its batch.
        """
        to, name = self.to, modules[0]
        weight = np.concatenate([self.floats(f"{module}.weight") for module in modules])
        bias = np.concatenate([self.floats(f"{module}.bias") for module in modules])
        if quieter and self.loud:
            channels = np.ones(weight.shape[1], dtype=np.float32)
            channels[list(self.loud)] = QUIETER
            weight = weight * channels
            rows = to.node("Mul", [rows, self.put(f"{name}.quieter", np.reciprocal(channels))])
        steps = np.maximum(np.maximum(weight.max(1), -weight.min(1)), np.finfo(np.float32).tiny) / np.float32(127)
        small = np.rint(weight / steps[:, None]).astype(np.int8)
        if shifted:
            bias = bias - np.float32(LOWEST_GELU) * steps * small.sum(1, dtype=np.float32)
            rows = to.node("Add", [rows, to.scalar(LOWEST_GELU)])
            largest = to.node("ReduceMax", [rows, to.ints(-1)], keepdims=1)
            step, zero = to.scalar(1 / 255), to.numbers(UINT8, 0, scalar=True)
        else:
            largest = to.node("ReduceMax", [to.node("Abs", [rows]), to.ints(-1)], keepdims=1)
            step, zero = to.scalar(1 / 127), to.numbers(UINT8, 128, scalar=True)
        inputs = to.node("QuantizeLinear", [to.node("Div", [rows, largest]), step, zero])
        turned = to.raw(f"{name}.bytes", INT8, small.T.shape, np.ascontiguousarray(small.T).tobytes())
        product = [inputs, turned, step, self.put(f"{name}.steps", steps), zero]
        return [
            to.node("Mul", [to.node("MatMulIntegerToFloat", product, of=RUNTIME), largest]),
            self.put(f"{name}.biases", bias),
        ]

    def put(self, name: str, numbers: Floats) -> str:
        return self.to.raw(name, FLOAT, numbers.shape, numbers.astype("<f4").tobytes())

    def added(self, name: str, made: Sequence[str], before: str) -> str:
        """LayerNorm(what was made + its bias + what was before)."""
        inputs = [made[0], before, f"{name}.weight", f"{name}.bias", made[1]]
        return self.to.node("SkipLayerNormalization", inputs, of=RUNTIME, epsilon=EPSILON)


def encoder(shape: Shape, weights: Mapping[str, Tensor], folder: Path, file: str, loud: tuple[int, ...]) -> bytes:
    """The graph as a serialised ModelProto, as `graph.encoder` makes it; the matrices in it, the vocabulary not.

    Raises OSError when the file of weights cannot be read.
    """
    to = Writer()
    with (folder / file).open("rb") as opened:
        graph = _Graph(to, opened, weights, loud)
        mask = to.node("Cast", [MASK], to=INT32)
        hidden = embeddings(to)
        for layer in range(shape.layers):
            hidden = _layer(graph, f"encoder.layer.{layer}", hidden, mask, shape)
    taken = [name for name in shape.tensors if name.startswith("embeddings.") or ".LayerNorm." in name]
    return whole_model(to, hidden, shape, weights, taken, file)


def _layer(graph: _Graph, name: str, hidden: str, mask: str, shape: Shape) -> str:
    to = graph.to
    modules = [f"{name}.attention.self.{which}" for which in ("query", "key", "value")]
    joined, biases = graph.dense(hidden, modules, quieter=True)
    parts = to.split("Split", [joined, to.ints(*[shape.hidden] * 3)], [f"{module}.rows" for module in modules], axis=-1)
    mixed = to.node("MultiHeadAttention", [*parts, biases, mask], of=RUNTIME, num_heads=shape.heads)
    made = graph.dense(mixed, [f"{name}.attention.output.dense"])
    attended = graph.added(f"{name}.attention.output.LayerNorm", made, hidden)
    wide = to.node("BiasGelu", graph.dense(attended, [f"{name}.intermediate.dense"], quieter=True), of=RUNTIME)
    made = graph.dense(wide, [f"{name}.output.dense"], shifted=True)
    return graph.added(f"{name}.output.LayerNorm", made, attended)
