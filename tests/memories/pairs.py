"""The pairs of tests/data/pairs, and how a matcher does on them. Knows no test.

Each line: id, known, new, relation (reinforces, contradicts, distinct), service, category. `unseen.jsonl` was
written after the rules were settled; what was learned from it is only what was plainly wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from memories.matching import Kind, Matcher

FOLDER = Path(__file__).parent.parent / "data" / "pairs"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts of one scope and how they relate, as a person sees it."""

    id: str
    known: str
    new: str
    relation: Kind
    service: str | None = None


def pairs(*names: str) -> list[Pair]:
    """The pairs of some files (without their ending), or of all."""
    files = [FOLDER / f"{name}.jsonl" for name in names] or sorted(FOLDER.glob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [Pair(row["id"], row["known"], row["new"], Kind(row["relation"]), row.get("service")) for row in rows]


def texts(*names: str) -> list[str]:
    """Every text of the pairs, once, in order."""
    return list(dict.fromkeys(text for pair in pairs(*names) for text in (pair.known, pair.new)))


@dataclass(frozen=True, slots=True)
class Figures:
    """The three-way confusion: how often a relation (first) was taken for another (second)."""

    confusion: Counter[tuple[Kind, Kind]]

    @classmethod
    def of(cls, found: list[Pair], matcher: Matcher) -> Figures:
        judged = ((pair.relation, matcher.relation(pair.known, pair.new, about=pair.service).kind) for pair in found)
        return cls(Counter(judged))

    def count(self, truth: Kind) -> int:
        return sum(self.confusion[truth, taken] for taken in Kind)

    def share(self, truth: Kind, taken: Kind) -> float:
        return self.confusion[truth, taken] / self.count(truth)

    @property
    def macro_f1(self) -> float:
        """The mean over the three relations of F1."""
        total = 0.0
        for kind in Kind:
            taken = sum(self.confusion[truth, kind] for truth in Kind)
            total += 2 * self.confusion[kind, kind] / (self.count(kind) + taken)
        return total / len(Kind)

    def __str__(self) -> str:
        rows = [f"{'':12}" + "".join(f"{kind:>13}" for kind in Kind)]
        rows += [f"{truth:12}" + "".join(f"{self.confusion[truth, taken]:13}" for taken in Kind) for truth in Kind]
        rates = (
            f"macro-F1 {self.macro_f1:.3f}",
            f"distinct lost {self.confusion[Kind.DISTINCT, Kind.REINFORCES]} of {self.count(Kind.DISTINCT)}",
            f"contradictions swallowed {self.share(Kind.CONTRADICTS, Kind.REINFORCES):.1%}",
            f"found {self.share(Kind.CONTRADICTS, Kind.CONTRADICTS):.0%}",
            f"restatements merged {self.share(Kind.REINFORCES, Kind.REINFORCES):.0%}",
        )
        return "\n".join([*rows, ", ".join(rates)])
