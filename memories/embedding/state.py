"""Which embedder the settings ask for, which one answers, and why none does.

An embedder is loaded once a process and again when its files changed: a model that appears on the disk is found
without a restart, one that disappears is off at once. What answers is the model whose vectors are complete; while
another one is being built, that is still the old one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

from memories.embedding import progress
from memories.embedding.base import Embedder, SemanticOff
from memories.embedding.endpoint import PREFIX, EndpointEmbedder
from memories.embedding.local import INSTALL, MINILM, LocalEmbedder, Spec
from memories.models import EmbeddingModel, ModelState, moment_of

LOCAL: Spec = MINILM
"""The local model."""

MOST_COUNTED = 10_000
"""How far the memories that wait are counted: a count of a million is not worth a page's time."""

_lock = threading.Lock()
_loaded: dict[Hashable, tuple[Hashable, Embedder | SemanticOff]] = {}
"""For each place an embedder comes from: what it was loaded as, and what that gave."""


@dataclass(frozen=True, slots=True)
class Answering:
    """The model whose vectors answer, the highest id of their rows (0: none), and how many memories wait for one."""

    model: EmbeddingModel
    newest: int
    waiting: int


def answering() -> Answering | None:
    """What a search needs to know of the vectors that answer, in one statement; None when there are none.

    Past the ORM: each recall asks this, and building the question takes longer there than answering it.
    """
    columns = [field.attname for field in EmbeddingModel._meta.concrete_fields]
    listed = ", ".join(f"m.{name}" for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {listed}, "  # noqa: S608  (our own names)
            "(SELECT e.id FROM embeddings e WHERE e.model_id = m.id ORDER BY e.id DESC LIMIT 1), "
            "(SELECT COUNT(*) FROM (SELECT 1 FROM embedding_pending p WHERE p.model_id = m.id LIMIT %s) w) "
            "FROM embedding_models m WHERE m.state = %s",
            [MOST_COUNTED, ModelState.ACTIVE.value],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    *values, newest, waits = row
    model = EmbeddingModel.from_db(connection.alias, columns, values)
    for name in ("created_at", "activated_at"):
        value = getattr(model, name)
        setattr(model, name, value and moment_of(value))
    return Answering(model, newest or 0, waits)


def active_model() -> EmbeddingModel | None:
    """The model whose vectors answer now, if there is one."""
    found = answering()
    return found.model if found else None


def wanted() -> Embedder:
    """The embedder that the settings ask for, whether its vectors are there or not. Raises SemanticOff."""
    kind = settings.CLAUDEOPS_EMBEDDINGS
    if kind == "local":
        return _local()
    if kind == "endpoint":
        return _endpoint(settings.CLAUDEOPS_EMBEDDINGS_MODEL)
    raise _switched_off()


def current() -> Embedder:
    """The embedder whose vectors answer. Raises SemanticOff with the reason when there is none.

    One look into the database, for which model that is; the embedder itself is kept. An endpoint may be silent:
    then `embed()` raises SemanticOff.
    """
    return current_with_answering()[0]


def current_with_answering() -> tuple[Embedder, Answering]:
    """The same, with all that a search needs to know of the vectors that answer: by one look into the database."""
    if settings.CLAUDEOPS_EMBEDDINGS == "off":
        raise _switched_off()
    found = answering()
    if found is None:
        raise _none_yet()
    return embedder_of(found.model), found


def embedder_of(model: EmbeddingModel) -> Embedder:
    """The embedder that made a model's vectors. Raises SemanticOff when it cannot be asked any more."""
    if model.name.startswith(PREFIX):
        return _endpoint(model.name.removeprefix(PREFIX).rpartition(":")[0], model.dimensions)
    if model.name != LOCAL.identity:
        raise SemanticOff(f"the model {model.name}, whose vectors are stored, is not known here any more")
    return _local()


def off_reason() -> str | None:
    """Why semantic search is off, as "semantic search is off: …"; None when it is on. Cheap: loads and asks nothing."""
    try:
        if settings.CLAUDEOPS_EMBEDDINGS == "off":
            raise _switched_off()
        active = active_model()
        if active is None:
            raise _none_yet()
        if not active.name.startswith(PREFIX):
            _look()
        elif active.error:
            raise SemanticOff(active.error)
    except SemanticOff as off:
        return str(off)
    return None


def pending_count() -> int:
    """Memories that wait for a vector of the model that answers (or of the one being built), up to MOST_COUNTED."""
    model = active_model() or EmbeddingModel.objects.filter(state=ModelState.BUILDING).first()
    return 0 if model is None else waiting(model)


def is_wanted(model: EmbeddingModel) -> bool:
    """Whether the settings ask for this model. Asks nobody: how many dimensions an endpoint gives is not looked at."""
    if settings.CLAUDEOPS_EMBEDDINGS == "endpoint":
        return model.name == f"{PREFIX}{settings.CLAUDEOPS_EMBEDDINGS_MODEL}:{model.dimensions}"
    return settings.CLAUDEOPS_EMBEDDINGS == "local" and model.name == LOCAL.identity


def waiting(model: EmbeddingModel) -> int:
    """Memories in line for `model`, counted up to MOST_COUNTED."""
    return model.pending.order_by()[:MOST_COUNTED].count()


def model_folder(spec: Spec | None = None) -> Path:
    """Where the local model lies, or will."""
    return Path(settings.CLAUDEOPS_MODELS_DIR) / (spec or LOCAL).name


def begin() -> threading.Thread | None:
    """Load the local model in a thread, when the settings ask for it; who needs it meanwhile waits for the rest.

    Half of a load is reading and arithmetic that a second core does. Returns the thread; None: there is none to load.
    """
    if settings.CLAUDEOPS_EMBEDDINGS != "local":
        return None
    thread = threading.Thread(target=_begun, name="embedder")
    thread.start()
    return thread


def _begun() -> None:
    with contextlib.suppress(SemanticOff):  # whoever asks for the embedder is told why
        _local()


def reset() -> None:
    """Forget what was loaded: after an installation, and between tests."""
    with _lock:
        _loaded.clear()


def _switched_off() -> SemanticOff:
    return SemanticOff("it is switched off", "CLAUDEOPS_EMBEDDINGS=local (or endpoint) switches it on.")


def _none_yet() -> SemanticOff:
    """Why no model's vectors answer yet."""
    if settings.CLAUDEOPS_EMBEDDINGS == "local":
        try:
            _look()
        except SemanticOff as off:
            return off
    model = EmbeddingModel.objects.filter(state=ModelState.BUILDING).first()
    if model is None:
        return SemanticOff("no vectors are made yet; workers make them within a minute or two")
    if model.error:
        return SemanticOff(model.error)
    left = waiting(model)
    count = f"{left:,}" + ("+" if left == MOST_COUNTED else "")
    return SemanticOff(f"the first vectors are being made, {count} memories to go")


def _files() -> tuple[Hashable, ...]:
    """What says whether the local model's files changed. Raises SemanticOff when one is not there."""
    folder, found = model_folder(), []
    for name in LOCAL.sha256:
        try:
            stat = (folder / name).stat()
        except OSError:
            raise SemanticOff(progress.missing(LOCAL.name, folder), INSTALL) from None
        found.append((name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return (str(folder), *found)


def _look() -> None:
    """Raise SemanticOff when the local model is not there, or could not be loaded here."""
    files = _files()
    loaded_as, found = _loaded.get("local", (None, None))
    if loaded_as == files and isinstance(found, SemanticOff):
        raise found


def _local() -> Embedder:
    return _kept("local", _files(), lambda: LocalEmbedder(model_folder(), LOCAL))


def _endpoint(model: str, dimensions: int | None = None) -> Embedder:
    url, key = settings.CLAUDEOPS_EMBEDDINGS_URL, settings.CLAUDEOPS_EMBEDDINGS_KEY
    if not url or not model:
        raise SemanticOff("the endpoint is not set up", "Set CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL.")
    return _kept((model, dimensions), (url, key), lambda: EndpointEmbedder(url, model, key, dimensions))


def _kept(place: Hashable, loaded_as: Hashable, load: Callable[[], Embedder]) -> Embedder:
    """What `load` gives, once a process; again only when `loaded_as` changed. A failure is kept as well."""
    there, found = _loaded.get(place, (None, None))
    if found is None or there != loaded_as:
        with _lock:
            there, found = _loaded.get(place, (None, None))
            if found is None or there != loaded_as:
                try:
                    found = load()
                except SemanticOff as off:
                    found = off
                _loaded[place] = (loaded_as, found)
    if isinstance(found, SemanticOff):
        raise SemanticOff(found.reason, found.fix)
    return found
