"""Write the graph of a BERT encoder with mean pooling as ONNX, without its weights.

    python -m tests.memories.embedding.graph model.safetensors memories/embedding/encoder.onnx

The graph names each tensor's place in the file of weights, so it fits this very file and no other. All texts of a batch
have the same number of tokens: nothing is padded, so nothing is masked.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from onnx import ModelProto, TensorProto, helper

IDS, POOLED = "input_ids", "pooled"  # as in memories.embedding.local
IR_VERSION, OPSET = 10, 20
EPSILON = 1e-12  # layer_norm_eps in the official config.json
HEADS = 12


class Writer:
    """Collects nodes and constants. `op` adds a node and returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def op(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def ints(self, *values: int) -> str:
        name = f"ints {values}"
        self.constants[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def scalar(self, value: float) -> str:
        name = f"scalar {value}"
        self.constants[name] = helper.make_tensor(name, TensorProto.FLOAT, [], [value])
        return name

    def dense(self, rows: str, name: str) -> str:
        return self.op("Gemm", rows, f"{name}.weight", f"{name}.bias", transB=1)

    def norm(self, rows: str, name: str) -> str:
        return self.op("LayerNormalization", rows, f"{name}.weight", f"{name}.bias", axis=-1, epsilon=EPSILON)


def encoder(weights: Path, heads: int = HEADS) -> bytes:
    """The graph for the safetensors file `weights`, as a serialised ModelProto."""
    with weights.open("rb") as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
        tensors = json.loads(file.read(begin - 8))
    hidden = tensors["embeddings.LayerNorm.weight"]["shape"][0]
    size, to = hidden // heads, Writer()
    flat = to.ints(-1, hidden)
    by_head = to.op("Concat", to.op("Shape", IDS), to.ints(heads, size), axis=0)

    words = to.op("Gather", "embeddings.word_embeddings.weight", IDS)
    length = to.op("Shape", IDS, start=1, end=2)
    positions = to.op("Slice", "embeddings.position_embeddings.weight", to.ints(0), length, to.ints(0))
    kinds = to.op("Slice", "embeddings.token_type_embeddings.weight", to.ints(0), to.ints(1), to.ints(0))
    rows = to.op("Add", words, to.op("Add", positions, kinds))
    rows = to.op("Reshape", to.norm(rows, "embeddings.LayerNorm"), flat)
    for layer in range(1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer."))):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            to.op("Transpose", to.op("Reshape", to.dense(rows, f"{name}.attention.self.{which}"), by_head), perm=order)
            for which, order in (("query", (0, 2, 1, 3)), ("key", (0, 2, 3, 1)), ("value", (0, 2, 1, 3)))
        )
        scores = to.op("Mul", to.op("MatMul", query, key), to.scalar(size**-0.5))
        mixed = to.op("Transpose", to.op("MatMul", to.op("Softmax", scores, axis=-1), value), perm=(0, 2, 1, 3))
        mixed = to.dense(to.op("Reshape", mixed, flat), f"{name}.attention.output.dense")
        rows = to.norm(to.op("Add", mixed, rows), f"{name}.attention.output.LayerNorm")
        wide = to.dense(to.op("Gelu", to.dense(rows, f"{name}.intermediate.dense")), f"{name}.output.dense")
        rows = to.norm(to.op("Add", wide, rows), f"{name}.output.LayerNorm")
    shape = to.op("Concat", to.op("Shape", IDS), to.ints(hidden), axis=0)
    to.op("ReduceMean", to.op("Reshape", rows, shape), to.ints(1), output=POOLED, keepdims=0)

    used = sorted({name for node in to.nodes for name in node.input} & tensors.keys())
    graph = helper.make_graph(
        to.nodes,
        "encoder",
        [helper.make_tensor_value_info(IDS, TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info(POOLED, TensorProto.FLOAT, ["texts", hidden])],
        [*to.constants.values(), *(_external(name, tensors[name], weights.name, begin) for name in used)],
    )
    opset = helper.make_opsetid("", OPSET)
    model: ModelProto = helper.make_model(
        graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="claudeops"
    )
    return model.SerializeToString()


def _external(name: str, entry: dict[str, Any], file: str, begin: int) -> TensorProto:
    """A tensor whose numbers lie in the file of weights."""
    start, end = entry["data_offsets"]
    tensor = TensorProto(
        name=name, data_type=TensorProto.FLOAT, dims=entry["shape"], data_location=TensorProto.EXTERNAL
    )
    for key, value in (("location", file), ("offset", begin + start), ("length", end - start)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(encoder(Path(sys.argv[1])))
