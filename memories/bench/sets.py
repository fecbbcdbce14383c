"""Sets for the recall bench: memories and queries read from lines, and the memories stored as they are.

Stores into whatever database is connected; `scratch` sees to it that this is never the operator's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories import embedding
from memories.bench.embedded import Progress, embedded
from memories.bench.lines import read_lines, text_of
from memories.capture.text import SURROGATE
from memories.embedding import SemanticOff, content_hash, embedded_text, to_bytes
from memories.errors import InvalidSet
from memories.models import Embedding, EmbeddingModel, Memory, ModelState, PendingEmbedding, Project
from memories.recall import keyword_index, pgvector

LONGEST = {"project": 64, "service": 64, "category": 32, "sequence": 200}
"""Characters that the database has room for."""
HIGHEST_POSITION = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Asked:
    """One query of a set; `as_of` and `project` narrow it. Without `relevant` it is answered and not counted."""

    id: str
    query: str
    relevant: tuple[str, ...]
    category: str = ""
    project: str = ""
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A set's memories in the database: primary keys by the set's ids, and the state of semantic search."""

    keys: Mapping[str, int]
    semantic: str


def read_queries(path: str | Path) -> list[Asked]:
    """The queries of a file: `{"id", "query", "relevant": [ids], "as_of"?, "project"?, "category"?}` a line.

    Raises InvalidSet with the line's number.
    """
    found: dict[str, Asked] = {}
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        relevant = row.get("relevant")
        if not isinstance(relevant, list) or not all(type(one) in (str, int) for one in relevant):
            raise InvalidSet(f"{where}: 'relevant' is {relevant!r}; a list of ids is needed.")
        one = Asked(
            id=text_of(row, "id", where),
            query=text_of(row, "query", where),
            relevant=tuple(dict.fromkeys(str(name) for name in relevant)),
            category=text_of(row, "category", where, optional=True),
            project=text_of(row, "project", where, optional=True),
            as_of=_time(row, "as_of", where),
        )
        if one.id in found:
            raise InvalidSet(f"{where}: the id {one.id!r} is there twice.", "Each query needs an id of its own.")
        found[one.id] = one
    if not found:
        raise InvalidSet(f"{path} holds no query.")
    return list(found.values())


def read_memories(path: str | Path) -> dict[str, dict[str, Any]]:
    """By id the fields of the memories of a file, as `Memory` has them; `project` is a slug.

    A line is `{"id", "text", "service"?, "category"?, "project"?, "created_at"?, "updated_at"?, "sequence"?,
    "position"?}`. Raises InvalidSet with the line's number.
    """
    found: dict[str, dict[str, Any]] = {}
    now = timezone.now()
    for number, row in read_lines(path):
        where = f"{path}, line {number}"
        name = text_of(row, "id", where)
        if name in found:
            raise InvalidSet(f"{where}: the id {name!r} is there twice.", "Each memory needs an id of its own.")
        at = _time(row, "created_at", where) or now
        found[name] = {
            # What no database can store: half a character, and PostgreSQL no NUL.
            "observation": SURROGATE.sub("\ufffd", text_of(row, "text", where)).replace("\0", " "),
            "service": _bounded(row, "service", where) or None,
            "category": _bounded(row, "category", where) or "behavior",
            "project": _project(row, where),
            "sequence": _bounded(row, "sequence", where),
            "position": _position(row, where),
            "created_at": at,
            "updated_at": _time(row, "updated_at", where) or at,
        }
    if not found:
        raise InvalidSet(f"{path} holds no memory.")
    return found


def store(read: Mapping[str, Mapping[str, Any]], cache: Path, progress: Progress | None = None) -> Stored:
    """Store memories as they were read, unmerged, with their vectors (kept in `cache` by content)."""
    slugs = sorted({str(row["project"]) for row in read.values() if row["project"]})
    projects = {one.slug: one for one in Project.objects.bulk_create(Project(slug=slug) for slug in slugs)}
    memories = [Memory(**{**row, "project": projects.get(row["project"])}) for row in read.values()]
    Memory.objects.bulk_create(memories, batch_size=1_000)
    keyword_index.catch_up()
    return Stored(dict(zip(read, (row.pk for row in memories), strict=True)), _embed(memories, cache, progress))


def _embed(memories: Sequence[Memory], cache: Path, progress: Progress | None) -> str:
    texts = [embedded_text(row) for row in memories]
    try:
        embedder = embedding.wanted()
        made = embedded(embedder, texts, cache, progress)
    except SemanticOff as off:
        return f"off: {off.reason}"
    model = EmbeddingModel.objects.create(
        name=embedder.name, dimensions=embedder.dimensions, state=ModelState.ACTIVE, filled_to=None
    )
    Embedding.objects.bulk_create(
        [
            Embedding(model=model, memory=row, vector=to_bytes(vector), content_hash=content_hash(text))
            for row, vector, text in zip(memories, made, texts, strict=True)
        ],
        batch_size=1_000,
    )
    PendingEmbedding.objects.all().delete()
    pgvector.ensure()
    return f"on ({embedder.name})"


def _bounded(row: Mapping[str, Any], name: str, where: str) -> str:
    text = SURROGATE.sub("\ufffd", text_of(row, name, where, optional=True)).replace("\0", " ")
    if len(text) > LONGEST[name]:
        raise InvalidSet(f"{where}: {name!r} has {len(text)} characters; at most {LONGEST[name]} are stored.")
    return text


def _project(row: Mapping[str, Any], where: str) -> str:
    slug = _bounded(row, "project", where)
    if slug and not re.fullmatch(r"[-a-zA-Z0-9_]+", slug):
        raise InvalidSet(f"{where}: 'project' is {slug!r}; allowed are letters, digits, hyphens and underscores.")
    return slug


def _position(row: Mapping[str, Any], where: str) -> int | None:
    value = row.get("position")
    if value is None:
        return None
    if type(value) is not int or abs(value) > HIGHEST_POSITION:
        raise InvalidSet(f"{where}: 'position' is {value!r}; a whole number is needed.")
    return value


def _time(row: Mapping[str, Any], name: str, where: str) -> datetime | None:
    value = row.get(name)
    if value in (None, ""):
        return None
    try:
        found = parse_datetime(value) if isinstance(value, str) else None
    except ValueError:  # it looks like a time, and there is no such day
        found = None
    if found is None:
        raise InvalidSet(f"{where}: {name!r} is {value!r}, which is no time; ISO 8601 is needed.")
    return found if found.tzinfo else found.replace(tzinfo=UTC)
