"""What a purge is about: the memories, sessions and texts that are chosen. Reads only."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db.models import Q, QuerySet

from claudeops.features.purge.needles import Needles
from claudeops.lib.cli import Refusal
from claudeops.lib.secrets import mask
from memories.capture.text import fold
from memories.lifecycle.projects import find_project
from memories.models import (
    AgentCapture,
    AgentFileEntry,
    Change,
    Disagreement,
    Fact,
    GateDecision,
    Memory,
    MemoryChange,
    Proposal,
    ProposalEvidence,
    Segment,
)
from memories.taxonomy import GENERAL
from sessions_app.models import Event, Session

BATCH = 500


class PurgeError(Refusal):
    pass


@dataclass(frozen=True, slots=True)
class Choice:
    """By what is chosen. The filters all apply; `ids` are numbers of memories and stand alone.

    `query` is a text: memories that contain it, and the text itself. `session` is a number: also all that the session
    wrote. `person` is the name of an account: also the tasks and reasons that it wrote. `short`: look for texts of
    memories of less than 8 characters, too; a query is looked for at any length.
    """

    ids: Sequence[int] = ()
    query: str = ""
    service: str = ""
    project: str = ""
    agent: str = ""
    session: int | None = None
    person: str = ""
    short: bool = False

    def without_text(self) -> dict[str, Any]:
        """Return what was given, with the SHA-256 of the query in its place."""
        fields = {name: value for name, value in asdict(self).items() if value not in ("", (), None, False)}
        if self.query:
            fields["query"] = f"sha256:{hashlib.sha256(fold(self.query).encode()).hexdigest()}"
        return fields


@dataclass(slots=True)
class Chosen:
    """What is to be forgotten: ids of memories, proposals and segments that say nothing else, sessions, and texts.

    `since` (ISO, UTC) is when the first of it was stored; "" when that is not known. `person` and `query` as in Choice.
    """

    memories: list[int] = field(default_factory=list)
    proposals: list[int] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    query: str = ""
    person: str = ""
    short: bool = False
    since: str = ""

    def needles(self) -> Needles:
        return Needles(self.texts, short=self.short, query=self.query)


def choose(choice: Choice) -> Chosen:
    """Return what is chosen. Raises PurgeError when nothing can be, ProjectNotFound for an unknown project."""
    filters = (choice.query, choice.service, choice.project, choice.agent, choice.session, choice.person)
    if bool(choice.ids) == any(value not in ("", None) for value in filters):
        raise PurgeError("usage", "Give IDs or filters, one of the two.", "See: manage.py memory purge --help")
    query = fold(choice.query)
    if mask(query) != query:
        raise PurgeError(
            "credential", "The query is a credential; those are masked.", "Run: manage.py secrets scan --mask"
        )
    if choice.session is not None and not Session.objects.filter(pk=choice.session).exists():
        raise PurgeError("session_not_found", f"There is no session {choice.session}.")
    selection = Chosen(memories=_memories(choice, query), query=query, person=choice.person, short=choice.short)
    if choice.session is not None:
        selection.sessions = [choice.session]
    selection.proposals = _proposals_of(selection.memories)
    selection.segments = sorted(set(_in(Fact.objects.all(), "memory", selection.memories, "segment_id")))
    selection.texts = sorted({text for text in (query, *_texts(selection)) if text and fold(text)})
    times = list(_in(Memory.objects.all(), "pk", selection.memories, "created_at"))
    times += Session.objects.filter(pk__in=selection.sessions).values_list("queued_at", flat=True)
    selection.since = min(times).isoformat() if times else ""
    return selection


def _memories(choice: Choice, query: str) -> list[int]:
    rows: QuerySet[Memory] = Memory.objects.order_by("pk")
    if choice.ids:
        ids = sorted(_in(rows, "pk", choice.ids, "pk"))
        if missing := sorted(set(choice.ids) - set(ids)):
            raise PurgeError("memory_not_found", f"There is no memory {missing[0]}.")
        return ids
    if choice.service:
        rows = rows.filter(service=None if choice.service == GENERAL else choice.service)
    if choice.project:
        rows = rows.filter(project=find_project(choice.project))
    if choice.agent:
        rows = rows.filter(Q(agent=choice.agent) | Q(session__agent__slug=choice.agent))
    if choice.session is not None:
        rows = rows.filter(session=choice.session)
    if choice.person:
        wrote = MemoryChange.objects.filter(actor=choice.person, after__has_key="observation")
        rows = rows.filter(pk__in=wrote.exclude(memory=None).values("memory"))
    if not query:
        return list(rows.values_list("pk", flat=True))
    needles = Needles([query], query=query)
    for words in needles.searched_by_words or ():
        for word in words:
            rows = rows.filter(observation__icontains=word)
    return [pk for pk, text in rows.values_list("pk", "observation").iterator(BATCH) if needles.are_in(text)]


def _proposals_of(memories: Collection[int]) -> list[int]:
    """Return the proposals that came from these memories alone: they say the same in other words."""
    touched = set(_in(ProposalEvidence.objects.all(), "memory", memories, "proposal_id"))
    gone = set(memories)
    others: set[int] = set()
    for ids in batches(sorted(touched)):
        evidence = ProposalEvidence.objects.filter(proposal__in=ids).values_list("proposal_id", "memory_id")
        others.update(proposal for proposal, memory in evidence if memory not in gone)
    return sorted(touched - others)


def _texts(selection: Chosen) -> Iterator[str]:
    """Yield each text that states what is to be forgotten."""
    ids = selection.memories
    for before, after, evidence in _in(MemoryChange.objects.all(), "memory", ids, "before", "after", "evidence"):
        for data, name in ((before, "observation"), (after, "observation"), (evidence, "text")):
            if isinstance(data, dict) and isinstance(data.get(name), str):
                yield data[name]
    for model, link, keys, column in (
        (Memory, "pk", ids, "observation"),
        (Fact, "memory", ids, "text"),
        (GateDecision, "memory", ids, "text"),
        (AgentCapture, "memory_id", ids, "text"),
        (AgentFileEntry, "memory", ids, "text"),
        (Disagreement, "older", ids, "older_text"),
        (Disagreement, "newer", ids, "newer_text"),
        (ProposalEvidence, "memory", ids, "text"),
        (Segment, "pk", selection.segments, "narrative"),
        (Proposal, "pk", selection.proposals, "text"),
        (Proposal, "pk", selection.proposals, "proposed_text"),
        (Event, "session", selection.sessions, "message"),
        (GateDecision, "session", selection.sessions, "text"),
        (Segment, "transcript__session", selection.sessions, "narrative"),
        (Fact, "segment__transcript__session", selection.sessions, "text"),
        (Session, "pk", selection.sessions, "response"),
        (Session, "pk", selection.sessions, "summary"),
    ):
        yield from _in(model._base_manager.all(), link, keys, column)
    if selection.person:
        yield from Session.objects.filter(requested_by=selection.person).values_list("task", flat=True)
        changes = MemoryChange.objects.filter(actor=selection.person).exclude(kind=Change.DELETED)
        yield from (
            after["observation"] for after in changes.values_list("after", flat=True) if after.get("observation")
        )


def _in(rows: QuerySet[Any], column: str, ids: Collection[int], *wanted: str) -> Iterator[Any]:
    """Yield columns of the rows whose `column` is one of `ids`, which may be many."""
    for batch in batches(ids):
        yield from rows.filter(**{f"{column}__in": batch}).order_by().values_list(*wanted, flat=len(wanted) == 1)


def batches(ids: Iterable[int], size: int = BATCH) -> Iterator[list[int]]:
    all_ids = list(ids)
    for start in range(0, len(all_ids), size):
        yield all_ids[start : start + size]
