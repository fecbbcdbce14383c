"""What a new text is compared with, and how it relates to each: made before anything is written, checked again after.

A small scope is read whole; of a big one those come that are near in words or in meaning. Models are asked here,
outside of any transaction of the store's; `meanwhile` makes up, under the store's lock, for what happened since.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from django.db import connection
from django.db.models import Q

from memories.embedding import SemanticOff, TextRefused, Vectors, active_model, current, embedded_text
from memories.embedding.base import STORED
from memories.matching import Kind, Relation, may_be_one, relation
from memories.matching.judge import Judge, current_judge
from memories.models import Embedding, EmbeddingModel, Inactive, MemoryChange
from memories.models.memory import MemoryQuerySet

logger = logging.getLogger(__name__)

SCANNED = 40
"""A scope of at most so many memories is compared whole. A text that was not read lately takes a millisecond."""

CHOSEN = 12
"""Memories that each side (words, meaning) brings from a bigger scope."""

READ_AT_ONCE = 2_000

_ENDED = (Inactive.EXPIRED, Inactive.SUPERSEDED)
_WORD = re.compile(r"\w+")


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


def prepare(rows: MemoryQuerySet, new: Text) -> Prepared:
    """Compare `new` with what is known of its scope, `rows`. Writes nothing, and never fails for want of a model."""
    seen = latest_change()
    known = comparable(rows)
    model, vector, off = embedded(new)
    texts = _texts(known, new, model, vector)
    found = _related(texts, new, _cosines(texts, model, vector))
    prepared = Prepared(seen, found, vector, model, off)
    judge = current_judge()
    return prepared if judge is None else _settled(prepared, new, judge)


def meanwhile(prepared: Prepared, rows: MemoryQuerySet, new: Text) -> dict[int, Relation]:
    """The relations that still stand, with those of memories that came or changed since. Under the store's lock."""
    changed = set(
        MemoryChange.objects.filter(pk__gt=prepared.seen, memory__isnull=False).values_list("memory", flat=True)
    )
    standing = {pk: found for pk, (_, found) in prepared.found.items() if pk not in changed}
    texts = dict(comparable(rows).filter(pk__in=changed).values_list("pk", "observation")) if changed else {}
    # An edit that changed nothing in the text leaves the judgement (a model's, say) as it was.
    same = {pk: prepared.found[pk][1] for pk, text in texts.items() if prepared.found.get(pk, ("",))[0] == text}
    anew = {pk: text for pk, text in texts.items() if pk not in same}
    judged = _related(anew, new, _cosines(anew, prepared.model, prepared.vector))
    return standing | same | {pk: found for pk, (_, found) in judged.items()}


def latest_change() -> int:
    """The id of the latest change of any memory; 0 when there is none. Writers are one at a time, so it only grows."""
    return MemoryChange.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


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
        embedder = current()
        model = active_model()
        if model is None or model.name != embedder.name:
            return None, None, "the model is being changed"
        return model, embedder.embed([embedded_text(new)])[0], ""
    except (SemanticOff, TextRefused) as off:
        return None, None, str(off)
    except Exception as error:  # a broken model must not cost an observation
        logger.exception("an observation could not be embedded; it is matched by words alone")
        return None, None, f"the model failed: {type(error).__name__}"


def _texts(known: MemoryQuerySet, new: Text, model: EmbeddingModel | None, vector: Vectors | None) -> dict[int, str]:
    """The texts worth comparing, by memory, the older first."""
    texts = dict(known.order_by("pk").values_list("pk", "observation")[: SCANNED + 1])
    if len(texts) <= SCANNED:
        return texts
    chosen = _near_in_words(known, new) | (_near_in_meaning(known, model, vector) if model else set())
    return dict(known.filter(pk__in=chosen).order_by("pk").values_list("pk", "observation"))


def _near_in_words(known: MemoryQuerySet, new: Text) -> set[int]:
    """Those that share most of the new text's words, rare words counting more; the same text is always among them."""
    wanted = set(_WORD.findall(new.observation.lower()))
    held: list[tuple[int, set[str]]] = []
    frequency: Counter[str] = Counter()
    total = 0
    for pk, text in known.order_by("pk").values_list("pk", "observation").iterator(READ_AT_ONCE):
        total += 1
        if shared := wanted.intersection(_WORD.findall(text.lower())):
            held.append((pk, shared))
            frequency.update(shared)
    weight = {word: math.log(1 + total / count) for word, count in frequency.items()}
    held.sort(key=lambda one: (-sum(weight[word] for word in one[1]), one[0]))
    return {pk for pk, _ in held[:CHOSEN]}


def _near_in_meaning(known: MemoryQuerySet, model: EmbeddingModel, vector: Vectors | None) -> set[int]:
    """Those whose vectors are the nearest."""
    best: list[tuple[float, int]] = []
    ids: list[int] = []
    if vector is None:
        return set()
    for pk in known.order_by("pk").values_list("pk", flat=True).iterator(READ_AT_ONCE):
        ids.append(pk)
        if len(ids) == READ_AT_ONCE:
            best = _best(best, _similarities(ids, model, vector))
            ids = []
    return {pk for _, pk in _best(best, _similarities(ids, model, vector))}


def _best(one: list[tuple[float, int]], other: Mapping[int, float]) -> list[tuple[float, int]]:
    return sorted([*one, *((value, pk) for pk, value in other.items())], reverse=True)[:CHOSEN]


def _cosines(texts: Mapping[int, str], model: EmbeddingModel | None, vector: Vectors | None) -> dict[int, float]:
    if model is None or vector is None or not texts:
        return {}
    return _similarities(list(texts), model, vector)


def _similarities(ids: list[int], model: EmbeddingModel, vector: Vectors) -> dict[int, float]:
    """Cosines by memory; a vector of another length than the model's is left out."""
    size = model.dimensions * STORED.itemsize
    rows = Embedding.objects.filter(model=model, memory__in=ids).values_list("memory", "vector")
    found = [(pk, bytes(raw)) for pk, raw in rows]
    found = [(pk, raw) for pk, raw in found if len(raw) == size]
    if not found:
        return {}
    matrix = np.frombuffer(b"".join(raw for _, raw in found), dtype=STORED).reshape(len(found), model.dimensions)
    return {pk: float(value) for (pk, _), value in zip(found, matrix @ vector, strict=True)}


def _related(texts: Mapping[int, str], new: Text, cosines: Mapping[int, float]) -> dict[int, tuple[str, Relation]]:
    return {
        pk: (text, relation(text, new.observation, about=new.service, cosine=cosines.get(pk)))
        for pk, text in texts.items()
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
