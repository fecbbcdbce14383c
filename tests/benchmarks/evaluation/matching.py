"""Judge labelled pairs of texts by the matching that `remember()` uses. Reads and writes no database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memories.embedding import Embedder, embedded_text
from memories.matching import Relation, relation
from tests.benchmarks.evaluation.sets import PairLine
from tests.benchmarks.evaluation.vectors import Progress, embed_cached


@dataclass(frozen=True, slots=True)
class _Text:
    observation: str
    service: str | None


def judge(
    pairs: Sequence[PairLine], embedder: Embedder | None, cache: Path, progress: Progress | None = None
) -> list[Relation]:
    """Relate each pair, with cosines if there is an embedder (vectors kept in `cache`). Raises SemanticOff."""
    cosines: Sequence[float | None] = [None] * len(pairs)
    if embedder is not None:
        texts = [embedded_text(_Text(text, one.service or None)) for one in pairs for text in (one.known, one.new)]
        vectors = embed_cached(embedder, texts, cache, progress)
        cosines = [float(known @ new) for known, new in zip(vectors[::2], vectors[1::2], strict=True)]
    return [
        relation(one.known, one.new, about=one.service or None, cosine=cosine)
        for one, cosine in zip(pairs, cosines, strict=True)
    ]
