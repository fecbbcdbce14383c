"""Where a memory stood in the ranking of a prompt, and what would have told it. Pure: a receipt's entries in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memories.injection import knowledge
from memories.injection.budget import Line, block, named_line, tokens
from memories.injection.project_rank import HEADING, INTRO
from memories.injection.windows import IN_WINDOW
from memories.taxonomy import KNOWLEDGE, OPS, PROJECT

FIRST, AROUND = 2, 2
"""Rows of the ranking that are shown: its first, those at the cut, those before the memory."""
BY_TASK = "relevant to the task"
"""How the reason of a memory begins that a recall for the task brought."""
FULL = ("the budget of ", "the limit of ")
"""How the reasons of memories begin that found no room."""


@dataclass(frozen=True, slots=True)
class Row:
    """A memory in the ranking, as the receipt copied it. `score` is that of the ranking; `first` outranks all by score.

    `tokens` are those of its line (characters / 4).
    """

    memory_id: int
    service: str | None
    category: str
    observation: str
    confidence: float
    score: float
    first: bool = False

    @property
    def order(self) -> tuple[bool, float, int]:
        return not self.first, -self.score, self.memory_id

    @property
    def line(self) -> Line:
        return Line(self.memory_id, self.service, self.category, self.observation, self.confidence)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The memories of one block in their order: the first `told` were told, the others found no room.

    `budget` is in tokens, `most` in memories (None: as many as fit). `eligible` counts those that might have been told,
    of which the receipt names the first only. `used` are the tokens of the block.
    """

    taxonomy: str
    rows: tuple[Row, ...]
    told: int
    budget: int
    used: int
    eligible: int
    most: int | None = None

    def rank(self, memory_id: int) -> int | None:
        """Return the place of a memory, from 1; None for one that the receipt does not name."""
        return next((place for place, row in enumerate(self.rows, 1) if row.memory_id == memory_id), None)

    def tokens_of(self, row: Row) -> int:
        if self.taxonomy == OPS.slug:
            return tokens(row.line.text)
        return tokens(named_line(row.category, row.observation, row.memory_id))

    def needed(self, rank: int) -> int:
        """Return the tokens of the block if it went on down to this rank."""
        rows = self.rows[:rank]
        if self.taxonomy == OPS.slug:
            return block([row.line for row in rows], self.eligible)[1] if rows else 0
        lines = [named_line(row.category, row.observation, row.memory_id) for row in rows]
        if self.taxonomy == KNOWLEDGE.slug:
            return knowledge.block(lines)[1] if lines else 0
        return tokens("\n".join([f"{HEADING}\n\n{INTRO}\n", *lines]))

    def fits(self, rank: int) -> bool:
        return self.needed(rank) <= self.budget and (self.most is None or rank <= self.most)

    def with_(self, row: Row) -> Ranking:
        """Return the ranking as if `row` had stood in it, or there with these values."""
        others = [one for one in self.rows if one.memory_id != row.memory_id]
        eligible = self.eligible + (self.rank(row.memory_id) is None)
        before = [place for place, one in enumerate(others, 1) if one.order < row.order]
        place = max(before, default=0)  # the others keep the order of the receipt
        return replace(self, rows=(*others[:place], row, *others[place:]), eligible=eligible)


def ranking_of(taxonomy: str, receipt: Mapping[str, Any], *, most: int | None = None) -> Ranking:
    """Return the ranking of a taxonomy's block from a receipt's columns."""
    included_rows = [_row(entry, taxonomy) for entry in _of(taxonomy, receipt.get("included"))]
    full = [entry for entry in _of(taxonomy, receipt.get("left_out")) if str(entry.get("reason")).startswith(FULL)]
    rows = (*included_rows, *(_row(entry, taxonomy) for entry in full))
    part = receipt if taxonomy == OPS.slug else receipt.get(taxonomy) or {}
    counts = part.get("counts") or {}
    return Ranking(
        taxonomy=taxonomy,
        rows=rows,
        told=len(included_rows),
        budget=int(part.get("budget") or 0),
        used=int(part.get("tokens") or 0),
        eligible=max(int(counts.get("eligible") or 0), len(rows)),
        most=int(part["limit"]) if "limit" in part else most,
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the table: `is_cut` stands for the line where the budget ends, `is_it` for the memory asked about."""

    rank: int = 0
    row: Row | None = None
    tokens: int = 0
    is_it: bool = False
    is_cut: bool = False


def around(ranking: Ranking, memory_id: int) -> list[Shown]:
    """Return the rows to show: the first, those at the cut, and those before the memory; with the cut between them."""
    rank = ranking.rank(memory_id) or 0
    places = {*range(1, FIRST + 1), *range(ranking.told - 1, ranking.told + 1 + AROUND)}
    places |= set(range(rank - AROUND, rank + 1)) if rank else set()
    rows = []
    for place, row in enumerate(ranking.rows, 1):
        if place in places:
            rows.append(Shown(place, row, ranking.tokens_of(row), row.memory_id == memory_id))
        if place == ranking.told and ranking.told < len(ranking.rows):
            rows.append(Shown(is_cut=True))
    return rows


def confirmations_needed(ranking: Ranking, row: Row, raised: Sequence[float]) -> tuple[int, float, int] | None:
    """Return (how many confirmations, the confidence, the rank) that would have told it; None when none of `raised` do.

    `raised` are the confidences after one, two, … confirmations.
    """
    for count, confidence in enumerate(raised, 1):
        # Where the score is the confidence, no product: it may differ in its last digit and lose a tie.
        has_own_score = row.score and row.confidence and row.score != row.confidence
        score = row.score * confidence / row.confidence if has_own_score else confidence
        moved = replace(row, confidence=confidence, score=score)
        new_ranking = ranking.with_(moved)
        rank = new_ranking.rank(row.memory_id)
        if rank is not None and new_ranking.fits(rank):
            return count, confidence, rank
    return None


def _of(taxonomy: str, entries: Any) -> list[Mapping[str, Any]]:
    """Return the entries of one taxonomy that name a memory; one without a taxonomy is operational."""
    rows = entries if isinstance(entries, list) else []
    return [
        entry
        for entry in rows
        if isinstance(entry, dict) and isinstance(entry.get("id"), int) and entry.get("taxonomy", OPS.slug) == taxonomy
    ]


def _row(entry: Mapping[str, Any], taxonomy: str) -> Row:
    confidence = float(entry.get("confidence") or 0.0)
    raw_score = entry.get("score")
    score = raw_score.get("value") if isinstance(raw_score, dict) else None
    reason = str(entry.get("reason") or "")
    matched = isinstance(raw_score, dict) and bool(raw_score.get("matched"))
    return Row(
        memory_id=entry["id"],
        service=entry.get("service"),
        category=str(entry.get("category") or ""),
        observation=str(entry.get("observation") or ""),
        confidence=confidence,
        score=float(score) if isinstance(score, int | float) else confidence,
        first=reason.startswith((IN_WINDOW, BY_TASK)) or (taxonomy == PROJECT.slug and matched),
    )
