"""Select the embedder: the wanted one or the one whose vectors answer. Loaded once, and again when its files change."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db import connection

from memories.embedding import progress
from memories.embedding.base import Embedder, SemanticOff
from memories.embedding.endpoint import PREFIX, EndpointEmbedder
from memories.embedding.local import INSTALL, MINILM, QUANTISED, LocalEmbedder, Spec
from memories.models import EmbeddingModel, ModelState

LOCAL: Spec = MINILM

MOST_COUNTED = 10_000
"""Limit of a count of waiting memories: a page does not wait for a count of a million."""

TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""glibc's: without it freed memory stays with the process."""

_lock = threading.Lock()
_loaded: dict[Hashable, tuple[Hashable, Embedder | SemanticOff]] = {}
"""By source: what identified an embedder's files or settings when it was loaded, and the result."""


@dataclass(frozen=True, slots=True)
class Answering:
    """The model whose vectors answer, its newest row (id, content hash; 0: none), and how many memories wait."""

    model: EmbeddingModel
    newest: int
    content_hash: str
    waiting: int


def answering() -> Answering | None:
    """Return what a search needs to know of the vectors that answer, by one query; None when there are none."""
    names = [field.attname for field in EmbeddingModel._meta.concrete_fields]
    with connection.cursor() as cursor:  # a raw queryset takes four times as long as its query
        cursor.execute(
            f"SELECT m.{', m.'.join(names)}, e.id, e.content_hash, "  # noqa: S608  (the model's columns)
            "(SELECT COUNT(*) FROM (SELECT 1 FROM embedding_pending p WHERE p.model_id = m.id LIMIT %s) w) "
            "FROM embedding_models m LEFT JOIN embeddings e ON e.id = "
            "(SELECT n.id FROM embeddings n WHERE n.model_id = m.id ORDER BY n.id DESC LIMIT 1) WHERE m.state = %s",
            [MOST_COUNTED, ModelState.ACTIVE.value],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    *values, newest, content_hash, waiting = row
    # SQLite's times have no zone.
    aware = [v.replace(tzinfo=v.tzinfo or UTC) if isinstance(v, datetime) else v for v in values]
    return Answering(EmbeddingModel.from_db(connection.alias, names, aware), newest or 0, content_hash or "", waiting)


def local_spec() -> Spec:
    """Return the local model as it is wanted: in bytes where they were made, else as published."""
    return LOCAL if LOCAL.int8 and (model_folder() / QUANTISED).is_file() else LOCAL.as_published


def active_model() -> EmbeddingModel | None:
    active = answering()
    return active.model if active else None


def wanted() -> Embedder:
    """Return the embedder that the settings ask for, with or without stored vectors. Raises SemanticOff."""
    kind = settings.CLAUDEOPS_EMBEDDINGS
    if kind == "local":
        return _local(local_spec())
    if kind == "endpoint":
        return _endpoint(settings.CLAUDEOPS_EMBEDDINGS_MODEL)
    raise _switched_off()


def current() -> Embedder:
    """Return the embedder whose vectors answer. Raises SemanticOff, but asks no endpoint: `embed()` does."""
    return current_with_answering()[0]


def current_with_answering() -> tuple[Embedder, Answering]:
    """Return the embedder whose vectors answer, with what a search needs to know; one query. Raises SemanticOff."""
    if settings.CLAUDEOPS_EMBEDDINGS == "off":
        raise _switched_off()
    active = answering()
    if active is None:
        raise _none_yet()
    return embedder_of(active.model), active


def embedder_of(model: EmbeddingModel) -> Embedder:
    """Return the embedder that made a model's vectors. Raises SemanticOff when it is gone."""
    if model.name.startswith(PREFIX):
        return _endpoint(model.name.removeprefix(PREFIX).rpartition(":")[0], model.dimensions)
    return _local(_spec_of(model))


def _spec_of(model: EmbeddingModel) -> Spec:
    for spec in (LOCAL, LOCAL.as_published):
        if model.name == spec.identity:
            return spec
    raise SemanticOff(f"the model {model.name}, whose vectors are stored, is no longer known here")


def off_reason() -> str | None:
    """Why semantic search is off, as "semantic search is off: …"; None when it is on. Loads no model, calls nobody."""
    try:
        if settings.CLAUDEOPS_EMBEDDINGS == "off":
            raise _switched_off()
        active = active_model()
        if active is None:
            raise _none_yet()
        if not active.name.startswith(PREFIX):
            _check_local(_spec_of(active))
        elif active.error:
            raise SemanticOff(active.error)
    except SemanticOff as off:
        return str(off)
    return None


def pending_count() -> int:
    """Count memories without a vector of the model that answers (or is being built), up to MOST_COUNTED."""
    model = active_model() or EmbeddingModel.objects.filter(state=ModelState.BUILDING).first()
    return 0 if model is None else waiting(model)


def is_wanted(model: EmbeddingModel) -> bool:
    """Whether the settings ask for this model. Calls no endpoint: its dimensions are not compared."""
    if settings.CLAUDEOPS_EMBEDDINGS == "endpoint":
        return model.name == f"{PREFIX}{settings.CLAUDEOPS_EMBEDDINGS_MODEL}:{model.dimensions}"
    return settings.CLAUDEOPS_EMBEDDINGS == "local" and model.name == local_spec().identity


def waiting(model: EmbeddingModel) -> int:
    """Count the memories queued for `model`, up to MOST_COUNTED."""
    return model.pending.order_by()[:MOST_COUNTED].count()


def model_folder(spec: Spec | None = None) -> Path:
    return Path(settings.CLAUDEOPS_MODELS_DIR) / (spec or LOCAL).name


def begin() -> threading.Thread | None:
    """Load the local model in a thread at process start, if it is wanted; whoever needs it waits for the load."""
    if settings.CLAUDEOPS_EMBEDDINGS != "local":
        return None
    thread = threading.Thread(target=_begun, name="embedder")
    thread.start()
    return thread


def _begun() -> None:
    with contextlib.suppress(SemanticOff):  # raised again for whoever asks for the embedder
        _local(local_spec())


def reset() -> None:
    """Forget what was loaded: after an endpoint's failure, and between tests."""
    with _lock:
        _loaded.clear()


def release() -> None:
    """Give the memory of the local model back to the system. Whoever needs the model next loads it again."""
    with _lock:
        local = [place for place, (_, outcome) in _loaded.items() if isinstance(outcome, LocalEmbedder)]
        for place in local:
            del _loaded[place]
    if local and TRIM:
        TRIM(0)


def _switched_off() -> SemanticOff:
    return SemanticOff("it is switched off", "CLAUDEOPS_EMBEDDINGS=local (or endpoint) switches it on.")


def _none_yet() -> SemanticOff:
    if settings.CLAUDEOPS_EMBEDDINGS == "local":
        try:
            _check_local(local_spec())
        except SemanticOff as off:
            return off
    model = EmbeddingModel.objects.filter(state=ModelState.BUILDING).first()
    if model is None:
        return SemanticOff("there are no vectors yet; workers make them within a minute or two")
    if model.error:
        return SemanticOff(model.error)
    remaining = waiting(model)
    count = f"{remaining:,}" + ("+" if remaining == MOST_COUNTED else "")
    return SemanticOff(f"the first vectors are being made, {count} memories to go")


def _files(spec: Spec) -> tuple[Hashable, ...]:
    """Return what changes with the local model's files. Raises SemanticOff when one is missing."""
    folder, stats = model_folder(), []
    for name in spec.files:
        try:
            stat = (folder / name).stat()
        except OSError:
            raise SemanticOff(progress.missing(spec.name, folder), INSTALL) from None
        stats.append((name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return (str(folder), *stats)


def _check_local(spec: Spec) -> None:
    """Raise SemanticOff when the local model is missing, or this process failed to load it."""
    files = _files(spec)
    loaded_as, outcome = _loaded.get(spec.identity, (None, None))
    if loaded_as == files and isinstance(outcome, SemanticOff):
        raise outcome


def _local(spec: Spec) -> Embedder:
    return _kept(spec.identity, _files(spec), lambda: LocalEmbedder(model_folder(), spec))


def _endpoint(model: str, dimensions: int | None = None) -> Embedder:
    url, key = settings.CLAUDEOPS_EMBEDDINGS_URL, settings.CLAUDEOPS_EMBEDDINGS_KEY
    if not url or not model:
        raise SemanticOff("the endpoint is not set up", "Set CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL.")
    return _kept((model, dimensions), (url, key), lambda: EndpointEmbedder(url, model, key, dimensions))


def _kept(place: Hashable, loaded_as: Hashable, load: Callable[[], Embedder]) -> Embedder:
    """Cache what `load` returns by `place` until `loaded_as` changes. A failure is cached as well."""
    there, outcome = _loaded.get(place, (None, None))
    if outcome is None or there != loaded_as:
        with _lock:
            there, outcome = _loaded.get(place, (None, None))
            if outcome is None or there != loaded_as:
                try:
                    outcome = load()
                except SemanticOff as off:
                    outcome = off
                _loaded[place] = (loaded_as, outcome)
    if isinstance(outcome, SemanticOff):
        raise SemanticOff(outcome.reason, outcome.fix)
    return outcome
