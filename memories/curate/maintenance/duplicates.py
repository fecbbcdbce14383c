"""Sweep the store for memories that say the same: merge the sure pairs, ask about the unsure ones.

A memory is compared with the older ones of its scope, then with those of other categories that one prompt may hold
beside it. A night looks at LOOKED_AT memories and goes on where the last
one ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from memories.candidates import like_known, nearest_unsure
from memories.judging.rules import why_stays
from memories.matching import Kind, Relation
from memories.models import Disagreement, DisagreementKind, Memory, Verdict
from memories.models.memory import MemoryQuerySet, Trust
from memories.models.trust import kept_back_condition
from memories.recall.filters import Where, listed, where
from memories.taxonomy import TAXONOMIES

LOOKED_AT = 20_000
"""Memories of a night."""
BATCH = 100
MOST_QUESTIONS = 20
"""New questions of a night, after which the sweep ends for it: people have to answer them."""

Overlay = Mapping[int, Mapping[str, Any]]
"""Columns by memory id that a dry run would have changed by now."""


@dataclass(frozen=True, slots=True)
class Likely:
    """What a memory was found to be like: those that say the same, the best first, or one that is unsure.

    `kind` is that of the question about the unsure one.
    """

    newer: int
    text: str
    same: tuple[tuple[int, str, Relation], ...] = ()
    unsure: tuple[int, str, Relation] | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """What becomes of a pair: a merge into `winner`, or a question of `kind` ("" for a merge). `why` is for people."""

    winner: Memory
    loser: Memory
    relation: Relation
    kind: str = ""
    why: str = ""


def fit() -> MemoryQuerySet:
    """Return what may be merged: told to sessions, and no turn of a conversation."""
    rows = Memory.objects.filter(active=True, verdict=Verdict.ALLOW, sequence="")
    return rows.exclude(kept_back_condition())


def look(after: int, most: int, overlay: Overlay) -> tuple[list[Likely], bool]:
    """Compare the next `most` memories behind the id `after` with older ones; returns whether more follow, too.

    Writes nothing but the keyword index of what has none.
    """
    gone = sorted(pk for pk, new in overlay.items() if new.get("active") is False)
    rows = list(fit().filter(pk__gt=after).order_by("pk")[: most + 1])
    candidates = [_likely(row, gone) for row in rows[:most]]
    return candidates, len(rows) > most


def decide(one: Likely, rows: Mapping[int, Memory]) -> Decided | None:
    """Decide about what was found, by the rows as they are now; None when nothing follows."""
    newer = rows.get(one.newer)
    if newer is None or not _stands(newer, one.text):
        return None
    for pk, text, relation in one.same:
        older = rows.get(pk)
        if older is None or not _stands(older, text) or _is_asked(older, newer):
            continue
        winner, loser = stronger(older, newer)
        if not (why := _why_not(winner, loser)):
            return Decided(winner, loser, relation)
        if not _why_not(loser, winner):
            return Decided(loser, winner, relation)
        return Decided(winner, loser, relation, DisagreementKind.DUPLICATE, why)
    if one.unsure is not None:
        pk, text, relation = one.unsure
        older = rows.get(pk)
        if older is not None and _stands(older, text) and not _is_asked(older, newer):
            return Decided(older, newer, relation, one.kind, "unsure")
    return None


def ids_of(found: Iterable[Likely]) -> set[int]:
    ids = set()
    for one in found:
        ids |= {one.newer, *(pk for pk, _, _ in one.same)}
        if one.unsure:
            ids.add(one.unsure[0])
    return ids


def stronger(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """Return (the stronger, the weaker): by trust, confirmation, a person's exemption, confidence, use, age."""

    def strength(row: Memory) -> tuple[Any, ...]:
        used = row.merged_count + row.recall_count + row.told_count
        rank = -list(Trust).index(Trust(row.trust))
        return rank, row.confirmed_at is not None, row.persistent, row.confidence, used, -row.pk

    return (one, other) if strength(one) >= strength(other) else (other, one)


def _likely(row: Memory, gone: list[int]) -> Likely:
    relations = like_known(row, _scope(row), _fit_before(row, gone))
    same = sorted(
        ((pk, text, one) for pk, (text, one) in relations.items() if one.kind == Kind.REINFORCES),
        key=lambda pair: (-pair[2].score, pair[0]),
    )
    if same:
        return Likely(row.pk, row.observation, tuple(same))
    opposed = sorted(pk for pk, (_, one) in relations.items() if one.kind == Kind.CONTRADICTS)
    pk = opposed[0] if opposed else nearest_unsure((pk, one) for pk, (_, one) in relations.items())
    if pk is None and (whole := _scope(row, whole=True)) != _scope(row):
        # One prompt may hold those of another category too; a person decides about them.
        relations = like_known(row, whole, _fit_before(row, gone))
        pk = min(
            ((-one.score, pk) for pk, (_, one) in relations.items() if one.kind == Kind.REINFORCES), default=(0, None)
        )[1]
    if pk is None:
        return Likely(row.pk, row.observation)
    kind = DisagreementKind.CONTRADICTION if opposed else DisagreementKind.DUPLICATE
    return Likely(row.pk, row.observation, (), (pk, *relations[pk]), kind)


def _scope(row: Memory, *, whole: bool = False) -> Where:
    """Return the condition of the memories that can say the same as `row`; a project and an agent keep their own.

    With `whole`, those of other categories too, and those of its service and of none.
    """
    names = {"project": "project_id", "agent": "agent", "surface": "surface"}
    names |= {name: name for name in TAXONOMIES[row.taxonomy].scope if name != "project" and not whole}
    values = {"taxonomy": row.taxonomy, **{column: getattr(row, column) for column in names.values()}}
    parts = [f"memories.{name} IS NULL" if value is None else f"memories.{name} = %s" for name, value in values.items()]
    params = [value for value in values.values() if value is not None]
    if whole and row.service is not None:
        parts, params = [*parts, "(memories.service = %s OR memories.service IS NULL)"], [*params, row.service]
    return Where(f"({' AND '.join(parts)})", tuple(params))


def _fit_before(row: Memory, gone: list[int]) -> Where:
    clause = where(fit().filter(pk__lt=row.pk))
    if not gone:
        return clause
    source, ids = listed(gone)
    return Where(f"({clause.sql} AND memories.id NOT IN (SELECT given.value FROM {source}))", (*clause.params, ids))  # noqa: S608


def _stands(row: Memory, text: str) -> bool:
    return row.active and row.verdict == Verdict.ALLOW and row.observation == text


def _is_asked(older: Memory, newer: Memory) -> bool:
    """Whether the pair is a question already, open or answered."""
    pair = Q(older=older.pk, newer=newer.pk) | Q(older=newer.pk, newer=older.pk)
    return Disagreement.objects.filter(pair).exists()


def _why_not(winner: Memory, loser: Memory) -> str:
    """Say why `loser` may not be given up for `winner` without a person; "" when it may."""
    if why := why_stays(winner, loser):
        return why
    if winner.expires_at is not None and (loser.expires_at is None or loser.expires_at > winner.expires_at):
        return f"memory {winner.pk} ends before memory {loser.pk}"
    if not set(loser.tags or ()) <= set(winner.tags or ()):
        return f"memory {loser.pk} has tags that memory {winner.pk} has not"
    return ""
