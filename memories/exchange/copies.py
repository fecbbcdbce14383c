"""Copy memories into another project, with their origin and history, and relate them to what is known there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from memories import store
from memories.capture.statement import Provenance, Statement
from memories.errors import InvalidMemory
from memories.lifecycle.lock import writing
from memories.lifecycle.rules import Lifetimes
from memories.lifecycle.write import Why
from memories.models import Inactive, Memory, MemoryChange, Project, Source, to_utc
from memories.taxonomy import PROJECT

HISTORY = 100
"""Changes of the original that the copy's first change keeps, the latest ones."""

OF_A_CHANGE = ("kind", "at", "actor", "reason", "before", "after")
COPIED = (
    *("taxonomy", "taxonomy_version", "category", "service", "agent", "observation", "confidence", "active"),
    *("inactive_reason", "tier", "source", "verdict", "verdict_reason", "exposure", "exposed_to", "provisional"),
    *("trust", "confirmed_at", "tags", "surface", "persistent", "approved_by_id", "approved_at", "updated_at"),
    "decayed_until",
)
"""Columns of a copy. Its relevance, its counts and its end belong to the project that it is in."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The outcome for one memory: `memory_id` is the copy, or what says the same there already (`created` False)."""

    origin_id: int
    memory_id: int
    created: bool


def uuid_in(origin: UUID, slug: str) -> UUID:
    """Return the UUID of a memory's copy in a project: the same at each attempt, so that a second copy finds it."""
    return uuid5(origin, slug)


def copy_to(
    memories: Iterable[Memory], project: Project, *, by: str, at: datetime | None = None, reason: str = ""
) -> list[Copied]:
    """Copy project memories to `project`; idempotent, all or none.

    A text that is active there already is not stored again. What the copy seems to contradict or to repeat there
    becomes a question for a person; a copy is no evidence, so that nothing is lowered or confirmed by it. Raises
    InvalidMemory for a memory of another taxonomy, of this project, or merged into another.
    """
    when = to_utc(at)
    originals = list(memories)
    for original in originals:
        _check(original, project)
    # What is read of the known memories stands before the transaction, as when a session says something.
    statements = {one.pk: _statement(one) for one in originals}
    there = Provenance(Source.IMPORT, by, project_id=project.pk, channel="copy")  # a person's is not compared
    prepared = {one.pk: store.prepare(statements[one.pk], there) for one in originals}
    copies: list[Copied] = []
    with writing():
        lifetimes = Lifetimes()
        for original in originals:
            existing = _known(original, project)
            if existing is not None:
                copies.append(Copied(original.pk, existing, False))
                continue
            copy = Memory(
                **{name: getattr(original, name) for name in COPIED},
                uuid=uuid_in(original.uuid, project.slug),
                project=project,
                created_at=when,
            )
            copy.expires_at = lifetimes.end(copy, when)
            origin: dict[str, Any] = {
                "uuid": str(original.uuid),
                "project": original.project.slug if original.project else None,
                "history": _history(original),
            }
            whose = f"project {original.project.slug}" if original.project else "all projects"
            words = reason or f"Copied from {whose}, where it is memory {original.pk}."
            store.insert(copy, Why(by, when, words, {"channel": "copy", "copied_from": origin}))
            store.note_relations(copy, statements[original.pk], there, prepared[original.pk], at=when)
            copies.append(Copied(original.pk, copy.pk, True))
    return copies


def _check(memory: Memory, project: Project) -> None:
    if memory.taxonomy != PROJECT.slug:
        raise InvalidMemory(
            f"Memory {memory.pk} is of the taxonomy {memory.taxonomy}; only project memories are copied.",
            "Nothing was copied; leave it out.",
        )
    if memory.project_id == project.pk:
        raise InvalidMemory(f"Memory {memory.pk} is in {project.slug} already.", "Nothing was copied; leave it out.")
    if memory.inactive_reason in (Inactive.MERGED, Inactive.SUPERSEDED):
        raise InvalidMemory(
            f"Memory {memory.pk} was {memory.get_inactive_reason_display()}.", "Copy the one that replaced it."
        )


def _statement(memory: Memory) -> Statement:
    return Statement(memory.category, memory.observation, memory.service, memory.taxonomy, tags=tuple(memory.tags))


def _known(original: Memory, project: Project) -> int | None:
    """Return the copy that is there, or the active memory of the same type that says the same."""
    earlier = Memory.objects.filter(uuid=uuid_in(original.uuid, project.slug)).values_list("pk", flat=True).first()
    if earlier is not None:
        return earlier
    rows = Memory.objects.active().filter(taxonomy=PROJECT.slug, project=project, category=original.category)
    same = store.same_observation(rows, original.observation)
    return None if same is None else same.pk


def _history(memory: Memory) -> list[dict[str, Any]]:
    changes = MemoryChange.objects.filter(memory=memory).order_by("-at", "-pk")[:HISTORY]
    rows = [{name: getattr(change, name) for name in OF_A_CHANGE} for change in changes]
    return [row | {"at": row["at"].isoformat()} for row in reversed(rows)]
