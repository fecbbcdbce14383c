"""The three-way judgement against what people said: confusion, macro-F1, and the three rates that matter.

Text against text: no row of the operator's is read or written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memories.bench.embedded import Progress, embedded
from memories.bench.lines import read_lines, text_of
from memories.embedding import Embedder, embedded_text
from memories.errors import InvalidSet
from memories.matching import Kind, Relation, relation

SAID_EVERY = 50


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts of one scope, and how they relate as a person sees it (None: nobody said)."""

    id: str
    known: str
    new: str
    relation: Kind | None = None
    service: str = ""
    category: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """The three-way confusion: how often a relation (first) was taken for another (second)."""

    confusion: Counter[tuple[Kind, Kind]] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.confusion.values())

    def count(self, truth: Kind) -> int:
        return sum(self.confusion[truth, taken] for taken in Kind)

    def share(self, truth: Kind, *taken: Kind) -> float:
        """Of what is `truth`, the share that was taken for one of `taken`; 0 when there is none."""
        count = self.count(truth)
        return sum(self.confusion[truth, one] for one in taken) / count if count else 0.0

    @property
    def macro_f1(self) -> float:
        """The mean of F1 over the relations that occur."""
        scores = []
        for kind in Kind:
            said, taken = self.count(kind), sum(self.confusion[truth, kind] for truth in Kind)
            if said or taken:
                scores.append(2 * self.confusion[kind, kind] / (said + taken))
        return sum(scores) / len(scores) if scores else 0.0

    @property
    def destructive(self) -> int:
        """A distinct fact merged or superseded, a contradiction taken as a restatement."""
        confusion = self.confusion
        return (
            confusion[Kind.DISTINCT, Kind.REINFORCES]
            + confusion[Kind.DISTINCT, Kind.CONTRADICTS]
            + confusion[Kind.CONTRADICTS, Kind.REINFORCES]
        )

    def data(self) -> dict[str, Any]:
        """The figures as JSON; rates are shares of 0..1."""
        return {
            "pairs": self.total,
            "confusion": {truth: {taken: self.confusion[truth, taken] for taken in Kind} for truth in Kind},
            "macro_f1": round(self.macro_f1, 4),
            "distinct_lost": round(self.share(Kind.DISTINCT, Kind.REINFORCES), 4),
            "contradictions_swallowed": round(self.share(Kind.CONTRADICTS, Kind.REINFORCES), 4),
            "restatements_merged": round(self.share(Kind.REINFORCES, Kind.REINFORCES), 4),
            "destructive": round(self.destructive / self.total, 4) if self.total else 0.0,
        }


def read_pairs(path: str | Path) -> list[Pair]:
    """The pairs of a file: `{"id", "known", "new", "relation"?, "service"?, "category"?}` a line.

    Raises InvalidSet with the line's number.
    """
    found: list[Pair] = []
    seen: set[str] = set()
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        said = text_of(row, "relation", where, optional=True)
        if said and said not in set(Kind):
            raise InvalidSet(f"{where}: 'relation' is {said!r}; allowed are {', '.join(Kind)}.")
        pair = Pair(
            text_of(row, "id", where),
            text_of(row, "known", where),
            text_of(row, "new", where),
            Kind(said) if said else None,
            text_of(row, "service", where, optional=True),
            text_of(row, "category", where, optional=True),
        )
        if pair.id in seen:
            raise InvalidSet(f"{where}: the id {pair.id!r} is there twice.", "Each pair needs an id of its own.")
        seen.add(pair.id)
        found.append(pair)
    if not found:
        raise InvalidSet(f"{path} holds no pair.")
    return found


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair with the answer it got."""

    pair: Pair
    found: Relation

    def data(self) -> dict[str, Any]:
        return {"id": self.pair.id, "relation": self.found.kind, "evidence": self.found.evidence}


@dataclass(frozen=True, slots=True)
class _Said:
    """A text of a pair, as it is embedded."""

    observation: str
    service: str | None


def judge_pairs(
    pairs: Sequence[Pair],
    embedder: Embedder | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
    embedding: Progress | None = None,
) -> list[Judged]:
    """Every pair by the rules that `remember()` asks, with cosines when there is an embedder.

    Vectors are kept in the folder `cache` by content, so that a run that broke off goes on. `progress` gets (judged,
    all), `embedding` (embedded, to be embedded). Raises SemanticOff when the embedder stops answering.
    """
    cosines = _cosines(pairs, embedder, cache, embedding) if embedder and cache else [None] * len(pairs)
    found: list[Judged] = []
    for pair, cosine in zip(pairs, cosines, strict=True):
        found.append(Judged(pair, relation(pair.known, pair.new, about=pair.service or None, cosine=cosine)))
        if progress and (len(found) % SAID_EVERY == 0 or len(found) == len(pairs)):
            progress(len(found), len(pairs))
    return found


def _cosines(pairs: Sequence[Pair], embedder: Embedder, cache: Path, progress: Progress | None) -> list[float | None]:
    said = [_Said(text, pair.service or None) for pair in pairs for text in (pair.known, pair.new)]
    vectors = embedded(embedder, [embedded_text(one) for one in said], cache, progress)
    return [float(one @ other) for one, other in zip(vectors[::2], vectors[1::2], strict=True)]


def figures_of(judged: Iterable[Judged]) -> Figures:
    """The figures of the pairs whose relation is known."""
    return Figures(Counter((one.pair.relation, one.found.kind) for one in judged if one.pair.relation is not None))
