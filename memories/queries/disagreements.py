"""Disagreements with their differences and the reasons, open and answered. Reads only; pages continue from an id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Max

from claudeops.lib.diff import GONE, NEW, Piece, word_diff
from memories.models import Disagreement, DisagreementState, Memory, MemoryChange
from memories.models.disagreement import DisagreementQuerySet

SIZE = 20


@dataclass(frozen=True, slots=True)
class Side:
    """One memory of the pair, its text in pieces, and the id of its latest change."""

    title: str
    memory: Memory | None
    pieces: tuple[Piece, ...]
    seen: int


@dataclass(frozen=True, slots=True)
class Question:
    row: Disagreement
    older: Side
    newer: Side
    reasons: tuple[str, ...]
    judged: tuple[str, ...] = ()
    """What a model said of the pair."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of questions; `further` is the id to continue after, None at the end."""

    questions: tuple[Question, ...]
    further: int | None


def open_questions(kind: str = "") -> DisagreementQuerySet:
    rows = Disagreement.objects.open()
    return rows.filter(kind=kind) if kind else rows


def answered(kind: str = "") -> DisagreementQuerySet:
    rows = Disagreement.objects.answered()
    return rows.filter(kind=kind) if kind else rows


def page_of(rows: DisagreementQuerySet, after: int | None = None) -> Page:
    """Return the newest questions, those before the id `after`. Two queries, whatever their number."""
    rows = rows.select_related("older", "newer").order_by("-id")
    if after is not None:
        rows = rows.filter(pk__lt=after)
    newest = list(rows[: SIZE + 1])
    shown = newest[:SIZE]
    return Page(tuple(questions_of(shown)), shown[-1].pk if len(newest) > SIZE else None)


def question(pk: int) -> Question | None:
    """Return one question, open or answered; None without one of that id."""
    rows = Disagreement.objects.select_related("older", "newer").filter(pk=pk)
    return next(iter(questions_of(rows)), None)


def questions_of(rows: Iterable[Disagreement]) -> list[Question]:
    """Return the questions with their differences, in the order of `rows`. One query beside theirs."""
    rows = list(rows)
    ids = {pk for row in rows for pk in (row.older_id, row.newer_id) if pk is not None}
    latest = dict(
        MemoryChange.objects.filter(memory__in=ids).order_by().values_list("memory").annotate(latest=Max("pk"))
    )
    questions = []
    for row in rows:
        still = row.state == DisagreementState.OPEN
        one = row.older.observation if still and row.older else row.older_text
        other = row.newer.observation if still and row.newer else row.newer_text
        pieces = word_diff(one, other)
        left = tuple(piece for piece in pieces if piece.kind != NEW)
        right = tuple(piece for piece in pieces if piece.kind != GONE)
        older = Side("Known", row.older, left, latest.get(row.older_id or 0, 0))
        newer = Side("New", row.newer, right, latest.get(row.newer_id or 0, 0))
        questions.append(Question(row, older, newer, in_words(row.evidence), judged_in_words(row.judged)))
    return questions


def in_words(evidence: Mapping[str, Any]) -> tuple[str, ...]:
    """Describe the signals of the judgement, a sentence each."""
    sentences = [str(evidence["why"])] if evidence.get("why") else []
    if evidence.get("apart"):
        sentences.append(f"Why they were not taken as one: {evidence['apart']}")
    if isinstance(cosine := evidence.get("cosine"), int | float):
        sentences.append(f"Their meanings are {cosine:.0%} alike.")
    if isinstance(alike := evidence.get("similarity"), int | float):
        sentences.append(f"They share {alike:.0%} of their words and amounts.")
    for amount in evidence.get("quantities", ()):
        verdict = {"same": "the same", "different": "different amounts"}.get(amount["verdict"], "perhaps the same")
        sentences.append(f"{amount['known']} and {amount['new']} are {verdict}.")
    return tuple(sentences)


def judged_in_words(judged: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what a model said of a pair, and why it was left to a person; nothing when none was asked."""
    if not judged:
        return ()
    sentences = []
    if judged.get("relation"):
        word = _RELATIONS.get(str(judged["relation"]), str(judged["relation"]))
        sentences.append(f"The model {judged.get('model')} says that {word}: {judged.get('reason')}")
    if judged.get("why"):
        sentences.append(f"Left to a person: {judged['why']}.")
    return tuple(sentences)


_RELATIONS = {
    "reinforces": "they say the same",
    "contradicts": "they cannot both be true",
    "distinct": "they are two facts",
}
