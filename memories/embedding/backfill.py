"""Make missing vectors in batches: each is embedded outside a transaction and stored in a short one.

A process that dies leaves its memories in the queue. A new model's vectors are built while the old one answers.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from claudeops.lib.locks import single_flight
from memories.embedding import state
from memories.embedding.base import Embedder, SemanticOff, TextRefused, Vectors, content_hash, embedded_text
from memories.embedding.storage import Made, store_all
from memories.models import Embedding, EmbeddingModel, Memory, ModelState, PendingEmbedding, RecordLevel
from memories.telemetry import record

logger = logging.getLogger(__name__)

BATCH = 64
"""Texts embedded together and rows in one transaction: about a second of work, a lock of a few milliseconds."""
FILL = 5_000
"""Memories queued for a new model, or vectors of a retired one deleted, in one transaction."""
RETRY_REFUSED_AFTER = timedelta(hours=1)
LOCK_KEY = 0x636C_656D_62  # "clemb"


@dataclass(slots=True)
class Backfilled:
    """What a run did. `reason`: why it could do no more. `busy`: another process was at work."""

    embedded: int = 0
    unchanged: int = 0
    refused: int = 0
    removed: int = 0
    busy: bool = False
    reason: str = ""


def backfill(seconds: float = 45.0, *, source: str = "command") -> Backfilled:
    """Make missing vectors for about `seconds` at most. An embedder's failure is returned, never raised.

    `source` is what runs it, for its telemetry record; a run without vectors to make or remove leaves none.
    """
    begun = time.monotonic()
    result = _backfill(seconds)
    if result.embedded or result.refused or result.removed:
        record(
            "memory.embed.completed",
            component="embedding",
            source=source,
            level=RecordLevel.WARNING if result.refused else RecordLevel.INFO,
            duration_ms=int((time.monotonic() - begun) * 1000),
            embedded=result.embedded,
            unchanged=result.unchanged,
            refused=result.refused,
            removed=result.removed,
        )
    return result


def _backfill(seconds: float) -> Backfilled:
    if settings.CLAUDEOPS_EMBEDDINGS == "off":
        return Backfilled(reason="it is switched off")
    end = time.monotonic() + seconds
    with single_flight(LOCK_KEY, Path(settings.CLAUDEOPS_DATA_DIR) / "embeddings.lock") as only:
        result = Backfilled(busy=not only)
        if not only:
            return result
        active = state.active_model()
        if active is not None:
            _serve(active, end, result)
            active.refresh_from_db()
            if state.is_wanted(active) and not active.error and not _others(active):
                return result  # the usual case: no model is loaded, no endpoint is called
        try:
            embedder = state.wanted()
            building = _successor(embedder)
            if building is not None:
                _build(building, embedder, end, result)
        except SemanticOff as off:
            EmbeddingModel.objects.filter(state=ModelState.BUILDING).update(error=off.reason[:500])
            result.reason = result.reason or off.reason
        _clear(end, result)
        return result


def enqueue_all(*, force: bool = False) -> int:
    """Queue every memory for the models in use and return the queue's length; `force` remakes current vectors."""
    for model in EmbeddingModel.objects.exclude(state=ModelState.RETIRED):
        EmbeddingModel.objects.filter(pk=model.pk).update(filled_to=0)
        if force:
            PendingEmbedding.objects.filter(model=model).update(forced=True)
        _fill(EmbeddingModel.objects.get(pk=model.pk), None, forced=force)
    return PendingEmbedding.objects.exclude(model__state=ModelState.RETIRED).count()


def _serve(model: EmbeddingModel, end: float, result: Backfilled) -> None:
    _fill(model, end)
    error = ""
    try:
        if _has_work(model):
            _work(model, state.embedder_of(model), end, result)
    except SemanticOff as off:
        state.reset()  # the endpoint's dimensions may have changed
        error = result.reason = off.reason
    if error or model.error:
        EmbeddingModel.objects.filter(pk=model.pk).update(error=error[:500])


def _others(active: EmbeddingModel) -> bool:
    """Whether another model needs work: it is being built, or it was retired and has rows left."""
    others = EmbeddingModel.objects.exclude(pk=active.pk)
    has_rows = Q(Exists(Embedding.objects.filter(model=OuterRef("pk")))) | Q(
        Exists(PendingEmbedding.objects.filter(model=OuterRef("pk")))
    )
    return others.filter(Q(state=ModelState.BUILDING) | has_rows).exists()


def _successor(embedder: Embedder) -> EmbeddingModel | None:
    """Return the model that is to take over, None when it answers already. Retires any other unfinished model."""
    name, dimensions = embedder.name, embedder.dimensions
    with transaction.atomic():
        others = EmbeddingModel.objects.filter(state=ModelState.BUILDING).exclude(name=name)
        others.update(state=ModelState.RETIRED, error="")
        model, _ = EmbeddingModel.objects.get_or_create(name=name, defaults={"dimensions": dimensions})
        if model.dimensions != dimensions:
            raise SemanticOff(f"{name} gives {dimensions} dimensions now; its vectors have {model.dimensions}")
        if model.state == ModelState.RETIRED:
            model.state, model.filled_to = ModelState.BUILDING, 0
            model.save(update_fields=["state", "filled_to"])
    return None if model.state == ModelState.ACTIVE else model


def _build(model: EmbeddingModel, embedder: Embedder, end: float, result: Backfilled) -> None:
    """Make the vectors of a new model, and activate it when all are there."""
    _fill(model, end)
    _work(model, embedder, end, result)
    EmbeddingModel.objects.filter(pk=model.pk).exclude(error="").update(error="")
    model.refresh_from_db()
    if model.filled_to is None and not _has_work(model) and not _queue_forgotten(model):
        with transaction.atomic():
            EmbeddingModel.objects.filter(state=ModelState.ACTIVE).update(state=ModelState.RETIRED, error="")
            EmbeddingModel.objects.filter(pk=model.pk).update(state=ModelState.ACTIVE, activated_at=timezone.now())
        logger.info("vectors of %s answer from now on", model.name)


def _work(model: EmbeddingModel, embedder: Embedder, end: float, result: Backfilled) -> None:
    """Go through the queue once. Raises SemanticOff when the embedder does not work."""
    again = timezone.now() - RETRY_REFUSED_AFTER
    PendingEmbedding.objects.filter(model=model, failed_at__lt=again).update(failed_at=None)
    last = 0
    while time.monotonic() < end:
        queue = PendingEmbedding.objects.filter(model=model, failed_at=None, memory_id__gt=last).order_by("memory_id")
        forced = dict(queue.values_list("memory_id", "forced")[:BATCH])
        if not forced:
            break
        last = max(forced)
        _batch(model, embedder, forced, result)


def _batch(model: EmbeddingModel, embedder: Embedder, forced: dict[int, bool], result: Backfilled) -> None:
    """Embed and store these memories; True in `forced` means even if the vector is current."""
    rows = Memory.objects.filter(pk__in=forced).values_list("pk", "observation", "service", named=True)
    texts = {row.pk: embedded_text(row) for row in rows}
    hashes = {pk: content_hash(text) for pk, text in texts.items()}
    there = dict(Embedding.objects.filter(model=model, memory__in=forced).values_list("memory_id", "content_hash"))
    outdated = {pk: text for pk, text in texts.items() if forced[pk] or there.get(pk) != hashes[pk]}
    vectors, refused = _embed(embedder, list(dict.fromkeys(outdated.values())))
    by_id = {pk: Made(vectors[text], hashes[pk]) for pk, text in outdated.items() if text in vectors}
    result.embedded += store_all(model, by_id, texts.keys() - outdated.keys())
    result.unchanged += len(texts) - len(outdated)
    for pk, text in outdated.items():
        if text in refused:
            result.refused += 1
            PendingEmbedding.objects.filter(model=model, memory=pk).update(
                failed_at=timezone.now(), error=refused[text][:500]
            )


def _embed(embedder: Embedder, texts: list[str]) -> tuple[dict[str, Vectors], dict[str, str]]:
    """Return vectors by text, and reasons by refused text. Raises SemanticOff when the model refuses all of several."""
    if not texts:
        return {}, {}
    try:
        return dict(zip(texts, embedder.embed(texts), strict=True)), {}
    except TextRefused as refusal:
        if len(texts) == 1:
            return {}, {texts[0]: str(refusal)}
    vectors: dict[str, Vectors] = {}
    refused: dict[str, str] = {}
    for text in texts:
        single, why = _embed(embedder, [text])
        vectors |= single
        refused |= why
        if len(refused) >= 3 and not vectors:
            raise SemanticOff(next(iter(refused.values())))
    return vectors, refused


def _has_work(model: EmbeddingModel) -> bool:
    again = timezone.now() - RETRY_REFUSED_AFTER
    return model.pending.filter(Q(failed_at=None) | Q(failed_at__lt=again)).exists()


def _fill(model: EmbeddingModel, end: float | None, *, forced: bool = False) -> None:
    """Queue every memory for a model that is being built; a trigger queues the new ones."""
    while model.filled_to is not None and (end is None or time.monotonic() < end):
        with transaction.atomic():
            ids = list(Memory.objects.filter(pk__gt=model.filled_to).order_by("pk").values_list("pk", flat=True)[:FILL])
            PendingEmbedding.objects.bulk_create(
                [PendingEmbedding(model=model, memory_id=pk, forced=forced) for pk in ids], ignore_conflicts=True
            )
            model.filled_to = ids[-1] if ids else None
            model.save(update_fields=["filled_to"])


def _queue_forgotten(model: EmbeddingModel) -> bool:
    """Queue memories written while the model's row was created, which have no vector and no queue row; True if any."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO embedding_pending (model_id, memory_id) SELECT %s, m.id FROM memories m "
            "WHERE NOT EXISTS (SELECT 1 FROM embeddings e WHERE e.memory_id = m.id AND e.model_id = %s) "
            "AND NOT EXISTS (SELECT 1 FROM embedding_pending p WHERE p.memory_id = m.id AND p.model_id = %s) "
            "ON CONFLICT DO NOTHING",
            [model.pk] * 3,
        )
        return bool(cursor.rowcount > 0)


def _clear(end: float, result: Backfilled) -> None:
    for model in EmbeddingModel.objects.filter(state=ModelState.RETIRED):
        for rows in (model.pending, model.embeddings):
            while time.monotonic() < end:
                ids = list(rows.order_by("id").values_list("pk", flat=True)[:FILL])
                if not ids:
                    break
                count, _ = rows.filter(pk__in=ids).delete()
                result.removed += count if rows.model is Embedding else 0
