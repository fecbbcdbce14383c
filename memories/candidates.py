"""What a new text is compared with, and how it relates to each: made before anything is written, checked again after.

A small scope is read whole; of a big one those come that are near in words or in meaning. Models are asked here,
outside of any transaction of the store's; `meanwhile` makes up, under the store's lock, for what happened since.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from django.db import connection
from django.db.models import Q

from memories.embedding import SemanticOff, TextRefused, Vectors, current_with_model, embedded_text
from memories.embedding.base import STORED
from memories.matching import Kind, Relation, may_be_one, relation
from memories.matching.judge import Judge, current_judge
from memories.models import EmbeddingModel, Inactive, Memory
from memories.models.memory import MemoryQuerySet
from memories.near import Scope, choose, given
from memories.recall.scope import Where, where

logger = logging.getLogger(__name__)

SCANNED = 40
"""A scope of at most so many memories is compared whole. A text that was not read lately takes a millisecond."""

CHOSEN = 6
"""Memories that each side (words, meaning) brings from a bigger scope. Of restatements the first five hold all."""

_ENDED = (Inactive.EXPIRED, Inactive.SUPERSEDED)


class Text(Protocol):
    """What is compared: a candidate whose fields were checked."""

    @property
    def observation(self) -> str: ...

    @property
    def service(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A new text as it was compared: with what it was known by then.

    `seen` is the latest change then. `found` are the relations by memory, with the text that was compared.
    `vector` (float32, of length 1) is the new text's, by `model`; where there is none, `off` says why.
    """

    seen: int = 0
    found: Mapping[int, tuple[str, Relation]] = field(default_factory=dict)
    vector: Vectors | None = None
    model: EmbeddingModel | None = None
    off: str = ""


def prepare(within: Where, new: Text, *, of_service: bool = True) -> Prepared:
    """Compare `new` with what is known `within` its scope, and (`of_service`) of its service alone.

    Writes nothing, and never fails for want of a model.
    """
    seen = latest_change()
    model, vector, off = embedded(new)
    known = _known(_scope(within), new, of_service, model, vector)
    prepared = Prepared(seen, _related(known, new), vector, model, off)
    judge = current_judge()
    return prepared if judge is None else _settled(prepared, new, judge)


def meanwhile(prepared: Prepared, within: Where, new: Text) -> dict[int, Relation]:
    """The relations that still stand, with those of memories that came or changed since. Under the store's lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT memory_id FROM memory_changes WHERE id > %s AND memory_id IS NOT NULL", [prepared.seen]
        )
        changed = {pk for (pk,) in cursor.fetchall()}
    standing = {pk: found for pk, (_, found) in prepared.found.items() if pk not in changed}
    known = _of(changed, _scope(within), prepared.model, prepared.vector) if changed else {}
    # An edit that changed nothing in the text leaves the judgement (a model's, say) as it was.
    same = {pk: prepared.found[pk][1] for pk, one in known.items() if prepared.found.get(pk, ("",))[0] == one[0]}
    judged = _related({pk: one for pk, one in known.items() if pk not in same}, new)
    return standing | same | {pk: found for pk, (_, found) in judged.items()}


def latest_change() -> int:
    """The id of the latest change of any memory; 0 when there is none. Writers are one at a time, so it only grows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM memory_changes ORDER BY id DESC LIMIT 1")
        row = cursor.fetchone()
    return row[0] if row else 0


def comparable(rows: MemoryQuerySet) -> MemoryQuerySet:
    """What a candidate is compared with, inactive memories included: what has faded can come back.

    Not those held for review, and not those that ended (expired, superseded, merged into what was deleted):
    what is said again after that is new.
    """
    return rows.allowed().exclude(
        Q(inactive_reason__in=_ENDED) | Q(inactive_reason=Inactive.MERGED, superseded_by=None)
    )


def embedded(new: Text) -> tuple[EmbeddingModel | None, Vectors | None, str]:
    """The vector of a text with its model, or why there is none. Takes milliseconds, so never inside a transaction."""
    if connection.in_atomic_block:
        return None, None, "no model is asked inside a transaction"
    try:
        embedder, model = current_with_model()
        if model.name != embedder.name:
            return None, None, "the model is being changed"
        return model, embedder.embed([embedded_text(new)])[0], ""
    except (SemanticOff, TextRefused) as off:
        return None, None, str(off)
    except Exception as error:  # a broken model must not cost an observation
        logger.exception("an observation could not be embedded; it is matched by words alone")
        return None, None, f"the model failed: {type(error).__name__}"


_Known = dict[int, tuple[str, float | None]]
"""Texts by memory, the older first, with their cosine where both have a vector."""


def _scope(within: Where) -> Scope:
    return Scope(within, _comparable(connection.vendor))


@cache
def _comparable(vendor: str) -> Where:
    """`comparable` as SQL, made once."""
    return where(comparable(Memory.objects.all()))


def _known(scope: Scope, new: Text, of_service: bool, model: EmbeddingModel | None, vector: Vectors | None) -> _Known:
    """What is worth comparing: all of a small scope, of a big one what is near."""
    few = scope.few
    if few is not None and len(few) <= SCANNED:
        return _of(few.tolist(), scope, model, vector)
    service = new.service if of_service else None
    return _of(choose(scope, new.observation, service, model, vector, CHOSEN), scope, model, vector)


def _of(ids: Collection[int], scope: Scope, model: EmbeddingModel | None, vector: Vectors | None) -> _Known:
    """These memories, as far as they are of the scope."""
    if not ids:
        return {}
    source, join, wanted = given(ids)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT memories.id, memories.observation, e.vector FROM {source} "  # noqa: S608
            f"{join} memories ON memories.id = given.value "
            "LEFT JOIN embeddings e ON e.memory_id = memories.id AND e.model_id = %s "
            f"WHERE {scope.where.sql}",
            [wanted, model.pk if model else 0, *scope.where.params],
        )
        return _with_cosines(cursor.fetchall(), model, vector)


def _with_cosines(
    found: Iterable[tuple[int, str, bytes | memoryview | None]], model: EmbeddingModel | None, vector: Vectors | None
) -> _Known:
    """The older first; a vector of another length than the model's is passed over."""
    size = model.dimensions * STORED.itemsize if model else 0
    known: _Known = {}
    for pk, text, raw in sorted(found, key=lambda row: row[0]):
        cosine = None
        if raw is not None and vector is not None and len(raw) == size:
            cosine = float(np.frombuffer(raw, dtype=STORED) @ vector)
        known[pk] = (text, cosine)
    return known


def _related(known: _Known, new: Text) -> dict[int, tuple[str, Relation]]:
    return {
        pk: (text, relation(text, new.observation, about=new.service, cosine=cosine))
        for pk, (text, cosine) in known.items()
    }


def _settled(prepared: Prepared, new: Text, judge: Judge) -> Prepared:
    """With what a model says about the nearest of those that words and values leave unsure."""
    if connection.in_atomic_block or any(found.kind == Kind.REINFORCES for _, found in prepared.found.values()):
        return prepared
    unsure = nearest_unsure((pk, found) for pk, (_, found) in prepared.found.items())
    if unsure is None:
        return prepared
    text, found = prepared.found[unsure]
    verdict = judge.judge(text, new.observation, about=new.service)
    evidence: dict[str, Any] = {**found.evidence, "judge": verdict.as_evidence()}
    if verdict.kind is not None:
        evidence["why"] = f"A model says: {verdict.reason}"
    settled = Relation(verdict.kind or Kind.DISTINCT, found.score, evidence)
    return replace(prepared, found={**prepared.found, unsure: (text, settled)})


def nearest_unsure(found: Iterable[tuple[int, Relation]]) -> int | None:
    """Of memories that were judged distinct the nearest one that may be the same fact."""
    unsure = [
        (one.evidence.get("cosine", one.score), -pk)
        for pk, one in found
        if one.kind == Kind.DISTINCT and may_be_one(one.evidence)
    ]
    return -max(unsure)[1] if unsure else None
