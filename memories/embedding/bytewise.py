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
    FLOAT,
    INT8,
    RUNTIME,
    UINT8,
    Shape,
    Writer,
    embeddings,
    normed,
    whole_model,
)
from memories.embedding.weights import Tensor

Floats = NDArray[np.float32]

QUIETER = 4.0
"""What a loud channel is divided by, and its weights multiplied with: a power of two, so no digit changes."""

EVEN = (128, 127)
"""Where zero lies among the 256 steps, and how many of them are above it: numbers of either sign."""

GELU, LEAST_GELU = (20, 235), 2.0
"""The same for what GELU gives, which is never below -0.16998: 20 of 235 steps of a row whose largest is 2 or more."""


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

    def dense(
        self,
        rows: str,
        modules: Sequence[str],
        *,
        carried: str = "",
        quieter: bool = False,
        steps: tuple[int, int] = EVEN,
    ) -> tuple[str, Floats]:
        """rows · weightᵀ of these modules side by side, and their biases, which are not added yet.

        `rows` are too large by the bias of the module `carried` (see `added`); its share is taken off the biases.
        Each row of `rows` has a step of its own (its largest number is the last of the steps), each row of a weight
        as well: so a text's vector does not depend on what else is in its batch.
        """
        to, name = self.to, modules[0]
        weight = np.concatenate([self.floats(f"{module}.weight") for module in modules])
        bias = np.concatenate([self.floats(f"{module}.bias") for module in modules])
        if carried:
            bias = bias - weight @ self.floats(f"{carried}.bias")
        if quieter and self.loud:
            channels = np.ones(weight.shape[1], dtype=np.float32)
            channels[list(self.loud)] = QUIETER
            weight *= channels
            rows = to.node("Mul", [rows, self.put(f"{name}.quieter", np.reciprocal(channels))])
        of_weight = np.maximum(np.maximum(weight.max(1), -weight.min(1)), np.finfo(np.float32).tiny) / np.float32(127)
        weight /= of_weight[:, None]
        small = np.rint(weight, out=weight).astype(np.int8)  # in place: new memory costs more than the arithmetic
        turned = to.raw(f"{name}.bytes", INT8, small.T.shape, small.T.tobytes())
        if steps == GELU:
            largest = to.node("ReduceMax", [rows, to.ints(-1)], keepdims=1)
            largest = to.node("Max", [largest, to.scalar(LEAST_GELU)])
        else:
            largest = to.node("ReduceMax", [to.node("Abs", [rows]), to.ints(-1)], keepdims=1)
        step, zero = to.scalar(1 / steps[1]), to.numbers(UINT8, steps[0], scalar=True)
        inputs = to.node("QuantizeLinear", [to.node("Div", [rows, largest]), step, zero])
        product = [inputs, turned, step, self.put(f"{name}.steps", of_weight), zero]
        return to.node("Mul", [to.node("MatMulIntegerToFloat", product, of=RUNTIME), largest]), bias

    def put(self, name: str, numbers: Floats) -> str:
        return self.to.raw(name, FLOAT, numbers.shape, numbers.astype("<f4").tobytes())

    def added(self, name: str, made: str, before: str, carrying: str = "") -> str:
        """LayerNorm(what was made + what was before), where `before` carries the bias of what was made already.

        A LayerNorm adds a bias anyway. `carrying` names the module whose product will be added to this sum: its bias
        goes with the LayerNorm's own, which saves a pass over the rows.
        """
        return self.normed(name, self.to.node("Add", [made, before]), carrying)

    def normed(self, name: str, rows: str, carrying: str) -> str:
        bias = self.floats(f"{name}.bias")
        if carrying:
            bias = bias + self.floats(f"{carrying}.bias")
        return normed(self.to, name, rows, self.put(f"{name}.carrying", bias))


def encoder(shape: Shape, weights: Mapping[str, Tensor], folder: Path, file: str, loud: tuple[int, ...]) -> bytes:
    """The graph as a serialised ModelProto, as `graph.encoder` makes it; the matrices in it, the vocabulary not.

    Raises OSError when the file of weights cannot be read.
    """
    to = Writer()
    with (folder / file).open("rb") as opened:
        graph = _Graph(to, opened, weights, loud)
        hidden = graph.normed("embeddings.LayerNorm", embeddings(to), _output(0))
        for layer in range(shape.layers):
            after = _output(layer + 1) if layer + 1 < shape.layers else ""
            hidden = _layer(graph, f"encoder.layer.{layer}", hidden, after, shape)
    taken = [name for name in shape.tensors if _from_file(name)]
    return whole_model(to, hidden, shape, weights, taken, file)


def _output(layer: int) -> str:
    """The module whose product is added to what comes into a layer."""
    return f"encoder.layer.{layer}.attention.output.dense"


def _from_file(name: str) -> bool:
    return name.endswith("LayerNorm.weight") or (name.startswith("embeddings.") and "LayerNorm" not in name)


def _layer(graph: _Graph, name: str, hidden: str, after: str, shape: Shape) -> str:
    """What comes out carries the bias of the module `after`, as what comes in carries the attention's output's."""
    to, output = graph.to, f"{name}.attention.output"
    modules = [f"{name}.attention.self.{which}" for which in ("query", "key", "value")]
    joined, biases = graph.dense(hidden, modules, carried=f"{output}.dense", quieter=True)
    parts = to.split("Split", [joined, to.ints(*[shape.hidden] * 3)], [f"{module}.rows" for module in modules], axis=-1)
    parts.append(graph.put(f"{name}.attention.self.biases", biases))
    mixed = to.node("MultiHeadAttention", parts, of=RUNTIME, num_heads=shape.heads)
    made, _ = graph.dense(mixed, [f"{output}.dense"])
    attended = graph.added(f"{output}.LayerNorm", made, hidden, f"{name}.output.dense")
    made, biases = graph.dense(attended, [f"{name}.intermediate.dense"], carried=f"{name}.output.dense", quieter=True)
    wide = to.node("Gelu", [to.node("Add", [made, graph.put(f"{name}.intermediate.biases", biases)])])
    made, _ = graph.dense(wide, [f"{name}.output.dense"], steps=GELU)
    return graph.added(f"{name}.output.LayerNorm", made, attended, after)
