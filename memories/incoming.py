"""A candidate made ready to be compared and stored: its fields checked, and the rows it can repeat or contradict.

Reads only, past the ORM where each observation of a session would pay for it. Judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection

from memories.capture import fields
from memories.capture.candidate import Candidate, Provenance, candidate_key
from memories.capture.text import fold
from memories.errors import InvalidMemory
from memories.models import Memory, Source
from memories.models.memory import MemoryQuerySet
from memories.near import same_text
from memories.recall.filters import Where
from memories.taxonomy import DEFAULT_CONFIDENCE, Taxonomy


@dataclass(frozen=True, slots=True)
class Ready:
    """A candidate whose fields were checked; `confidence` is its first one, `scope` where it belongs, by field."""

    taxonomy: Taxonomy
    category: str
    service: str | None
    observation: str
    confidence: float
    tags: list[str]
    key: str
    scope: dict[str, Any]

    @property
    def where(self) -> Where:
        """The memories it can repeat or contradict, as SQL."""
        parts, params = [], []
        for name, value in self.scope.items():
            column = "memories.project_id" if name == "project" else f"memories.{name}"
            parts.append(f"{column} IS NULL" if value is None else f"{column} = %s")
            params += [] if value is None else [value]
        return Where(f"({' AND '.join(parts)})", tuple(params))

    @property
    def rows(self) -> MemoryQuerySet:
        """The same as rows."""
        return Memory.objects.filter(**self.scope)


def checked(candidate: Candidate, provenance: Provenance) -> Ready:
    """The candidate with its fields as they are stored. Raises InvalidMemory, which names the field."""
    if provenance.source not in Source.values:
        raise InvalidMemory(f"source is {provenance.source!r}; allowed are {', '.join(Source.values)}.")
    taxonomy = fields.checked_taxonomy(candidate.taxonomy)
    given = None if candidate.confidence is None else fields.checked_confidence(candidate.confidence)
    policy = taxonomy.first_confidence.get(provenance.source)
    if provenance.source == Source.HUMAN:
        confidence = given if given is not None else policy
        observation = fields.checked_observation(candidate.observation)
    else:
        confidence = policy if policy is not None else given
        # What is longer is held, and held as far as a person would read it.
        observation = fold(candidate.observation)[: fields.LONGEST_OBSERVATION]
    category = fields.checked_category(candidate.category, taxonomy)
    service = fields.checked_service(candidate.service)
    values = {
        "project": provenance.project_id,
        "service": service,
        "category": category,
        "agent": provenance.agent,
    }
    return Ready(
        taxonomy=taxonomy,
        category=category,
        service=service,
        observation=observation,
        confidence=DEFAULT_CONFIDENCE if confidence is None else confidence,
        tags=fields.checked_tags(candidate.tags),
        key=candidate_key(candidate),
        scope={"taxonomy": taxonomy.slug, **{name: values[name] for name in taxonomy.scope}},
    )


def said_already(ready: Ready, provenance: Provenance) -> tuple[int | None] | None:
    """(the memory that this candidate made or changed when this session said it before,); None when it did not."""
    if provenance.session_id is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT memory_id FROM memory_changes WHERE session_id = %s AND candidate_key = %s ORDER BY at, id LIMIT 1",
            [provenance.session_id, ready.key],
        )
        found = cursor.fetchone()
    return None if found is None else (found[0],)


def twin(rows: MemoryQuerySet, ready: Ready) -> Memory | None:
    """The first of the rows that says just this, whatever the case."""
    wanted = ready.observation.lower()
    said = ready.observation
    # The database folds plain letters alone; of others all are read.
    near = rows.filter(pk__in=same_text(said)) if said.isascii() else rows
    found = (
        pk for pk, text in near.order_by("pk").values_list("pk", "observation").iterator() if text.lower() == wanted
    )
    pk = next(found, None)
    return None if pk is None else Memory.objects.get(pk=pk)
