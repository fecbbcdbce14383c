"""A BERT encoder with mean pooling as an ONNX graph without weights, written anew at each load in a millisecond.

The weights stay in the official model.safetensors, which the graph points into and the runtime maps: nothing is
converted, nothing stored twice, and what is not used (most of the vocabulary) takes no memory. Standard operators
only (opset 20). Field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memories.embedding.protobuf import opening, part, real, varint, whole, wholes
from memories.embedding.weights import Tensor

FLOAT, UINT8, INT8, INT32, INT64 = 1, 2, 3, 6, 7  # TensorProto.DataType
WHOLE = {UINT8: 5, INT64: 7}  # the TensorProto's field that holds such numbers
IR_VERSION, OPSET = 10, 20

RUNTIME = "com.microsoft"
"""The runtime's own operators, several steps in one; version 1."""

IDS, POOLED = "input_ids", "pooled"
"""The graph's input, int64 of shape (batch, tokens), and its output, float32 of shape (batch, hidden).

All texts of a batch have as many tokens: nothing is padded, so nothing has to be masked.
"""

EPSILON = 1e-12  # layer_norm_eps in the official config.json


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes that the weights have. `tensors` are the names the graph takes from the weights file."""

    hidden: int
    heads: int
    layers: int

    @property
    def tensors(self) -> list[str]:
        names = [f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")]
        names += [f"embeddings.LayerNorm.{kind}" for kind in ("weight", "bias")]
        modules = [f"attention.self.{name}" for name in ("query", "key", "value")]
        modules += ["attention.output.dense", "attention.output.LayerNorm"]
        modules += ["intermediate.dense", "output.dense", "output.LayerNorm"]
        return names + [
            f"encoder.layer.{layer}.{module}.{kind}"
            for layer in range(self.layers)
            for module in modules
            for kind in ("weight", "bias")
        ]


class Writer:
    """Collects nodes; each `node` returns the name of what it computes."""

    def __init__(self) -> None:
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []
        self._known: dict[tuple[str, tuple[float, ...], bool], str] = {}

    def node(
        self, kind: str, inputs: Sequence[str], output: str = "", *, of: str = "", **attributes: float | Sequence[int]
    ) -> str:
        return self.split(kind, inputs, [output or f"{kind}_{len(self.nodes)}"], of=of, **attributes)[0]

    def split(
        self, kind: str, inputs: Sequence[str], outputs: list[str], *, of: str = "", **attributes: float | Sequence[int]
    ) -> list[str]:
        """A node with several outputs. `of` is whose operator it is, if not a standard one."""
        content = b"".join(part(1, name) for name in inputs) + b"".join(part(2, name) for name in outputs)
        content += part(4, kind) + b"".join(part(5, _attribute(name, value)) for name, value in attributes.items())
        self.nodes.append(part(1, content + (part(7, of) if of else b"")))
        return outputs

    def raw(self, name: str, kind: int, sizes: Sequence[int], numbers: bytes) -> str:
        """A tensor whose numbers lie in the graph itself, in the order of the machine's memory (little-endian)."""
        self.constants.append(part(5, wholes(1, sizes) + whole(2, kind) + part(8, name) + part(9, numbers)))
        return name

    def numbers(self, kind: int, *values: float, scalar: bool = False) -> str:
        """A constant of the graph's own: a row of numbers, or one alone."""
        key = (str(kind), values, scalar)
        if key not in self._known:
            name = self._known[key] = f"constant_{len(self._known)}"
            content = wholes(1, [] if scalar else [len(values)]) + whole(2, kind)
            if kind in WHOLE:
                content += part(WHOLE[kind], b"".join(varint(int(value)) for value in values))
            else:
                content += b"".join(real(4, value) for value in values)
            self.constants.append(part(5, content + part(8, name)))
        return self._known[key]

    def ints(self, *values: int) -> str:
        return self.numbers(INT64, *values)

    def scalar(self, value: float) -> str:
        return self.numbers(FLOAT, value, scalar=True)


def _attribute(name: str, value: float | Sequence[int]) -> bytes:
    if isinstance(value, int):
        return part(1, name) + whole(3, value) + whole(20, 2)
    if isinstance(value, float):
        return part(1, name) + real(2, value) + whole(20, 1)
    return part(1, name) + wholes(8, value) + whole(20, 7)


def encoder(shape: Shape, weights: Mapping[str, Tensor], file: str) -> bytes:
    """The graph as a serialised ModelProto. `weights` says where in the file named `file` its tensors lie."""
    to = Writer()
    hidden = normed(to, "embeddings.LayerNorm", embeddings(to))
    for layer in range(shape.layers):
        hidden = _layer(to, f"encoder.layer.{layer}", hidden, shape)
    return whole_model(to, hidden, shape, weights, shape.tensors, file)


def whole_model(
    to: Writer, hidden: str, shape: Shape, weights: Mapping[str, Tensor], names: Sequence[str], file: str
) -> bytes:
    """The ModelProto of what was written, up to the tokens' vectors `hidden`; `names` are the tensors it takes."""
    to.node("ReduceMean", [hidden, to.ints(1)], output=POOLED, keepdims=0)
    tensors = b"".join(part(5, _external(name, weights[name], file)) for name in names)
    pieces = [*to.nodes, part(2, "encoder"), tensors, *to.constants]
    pieces.append(part(11, _described(IDS, INT64, ["batch", "tokens"])))
    pieces.append(part(12, _described(POOLED, FLOAT, ["batch", shape.hidden])))
    opsets = part(8, part(1, "") + whole(2, OPSET)) + part(8, part(1, RUNTIME) + whole(2, 1))
    begun = whole(1, IR_VERSION) + part(2, "claudeops") + opening(7, sum(map(len, pieces)))
    return b"".join([begun, *pieces, opsets])  # at once: the numbers may be megabytes


def _external(name: str, tensor: Tensor, file: str) -> bytes:
    """A tensor whose numbers are in another file."""
    place = {"location": file, "offset": str(tensor.offset), "length": str(tensor.length)}
    entries = b"".join(part(13, part(1, key) + part(2, value)) for key, value in place.items())
    return wholes(1, tensor.shape) + whole(2, FLOAT) + part(8, name) + entries + whole(14, 1)


def _described(name: str, kind: int, sizes: Sequence[str | int]) -> bytes:
    dims = b"".join(part(1, whole(1, size) if isinstance(size, int) else part(2, size)) for size in sizes)
    return part(1, name) + part(2, part(1, whole(1, kind) + part(2, dims)))


def normed(to: Writer, name: str, value: str, bias: str = "") -> str:
    inputs = [value, f"{name}.weight", bias or f"{name}.bias"]
    return to.node("LayerNormalization", inputs, axis=-1, epsilon=EPSILON)


def _dense(to: Writer, name: str, rows: str) -> str:
    """rows · weightᵀ + bias, of two-dimensional rows: so the weights serve as they lie in the file."""
    return to.node("Gemm", [rows, f"{name}.weight", f"{name}.bias"], transB=1)


def embeddings(to: Writer) -> str:
    """The tokens' vectors as they come from the tables, not normed yet."""
    words = to.node("Gather", ["embeddings.word_embeddings.weight", IDS])
    length = to.node("Shape", [IDS], start=1, end=2)
    positions = to.node("Slice", ["embeddings.position_embeddings.weight", to.ints(0), length, to.ints(0)])
    kinds = to.node("Slice", ["embeddings.token_type_embeddings.weight", to.ints(0), to.ints(1), to.ints(0)])
    return to.node("Add", [words, to.node("Add", [positions, kinds])])


def _layer(to: Writer, name: str, hidden: str, shape: Shape) -> str:
    size = shape.hidden // shape.heads
    rows = to.node("Reshape", [hidden, to.ints(-1, shape.hidden)])
    extent = to.node("Concat", [to.node("Shape", [IDS]), to.ints(shape.heads, size)], axis=0)

    def heads(which: str, order: Sequence[int]) -> str:
        split = to.node("Reshape", [_dense(to, f"{name}.attention.self.{which}", rows), extent])
        return to.node("Transpose", [split], perm=order)

    query, key, value = heads("query", (0, 2, 1, 3)), heads("key", (0, 2, 3, 1)), heads("value", (0, 2, 1, 3))
    scores = to.node("Mul", [to.node("MatMul", [query, key]), to.scalar(size**-0.5)])
    shares = to.node("Softmax", [scores], axis=-1)
    mixed = to.node("Transpose", [to.node("MatMul", [shares, value])], perm=(0, 2, 1, 3))
    joined = to.node("Reshape", [mixed, to.ints(-1, shape.hidden)])
    attended = to.node("Add", [_dense(to, f"{name}.attention.output.dense", joined), rows])
    attended = normed(to, f"{name}.attention.output.LayerNorm", attended)

    wide = to.node("Gelu", [_dense(to, f"{name}.intermediate.dense", attended)])
    out = normed(to, f"{name}.output.LayerNorm", to.node("Add", [_dense(to, f"{name}.output.dense", wide), attended]))
    return to.node("Reshape", [out, to.node("Concat", [to.node("Shape", [IDS]), to.ints(shape.hidden)], axis=0)])
