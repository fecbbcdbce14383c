"""Store what an agent learned for its memory file, and count what was taken and what was not, with the reason.

The gate stands before all of it (`store.remember`). An answer counts once, however often it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from claudeops.lib.domain_error import DomainError
from memories import store
from memories.capture.fields import agent_id
from memories.capture.learned import Learned, Learning, Refused, learned
from memories.capture.statement import Provenance
from memories.lifecycle import forgotten, verbs
from memories.lifecycle.lock import writing
from memories.models import AgentCapture, By, CaptureOutcome, Exposure, Memory, MemoryChange, Project, Source
from memories.models.memory import MemoryQuerySet
from memories.taxonomy import AGENT

KEPT = timedelta(days=90)
"""How long the rows of what was captured are kept; the memories stay."""
BATCH = 1_000
LEFT_OUT = "Its agent left it out when it stated its whole memory."
TAKEN = (CaptureOutcome.CAPTURED, CaptureOutcome.CONFIRMED)
OUTCOMES = {
    "created": CaptureOutcome.CAPTURED,
    "reinforced": CaptureOutcome.CONFIRMED,
    "duplicate": CaptureOutcome.CONFIRMED,
    "held": CaptureOutcome.HELD,
    "discarded": CaptureOutcome.REFUSED,
}


def capture(
    answer: str,
    *,
    project: Project,
    agent: str,
    origin: str,
    provenance: Provenance,
    at: datetime,
    supported: Callable[[Provenance, str], Provenance] | None = None,
) -> list[AgentCapture]:
    """Take what an answer of an agent brings for its file; returns the rows that are new. `at` is aware UTC.

    `origin` names the answer. `provenance` says what the agent had read; its project and agent are set here.
    `supported` adds to it who supports a learning, and what that repeats.
    """
    name = agent_id(agent)
    agent_provenance = replace(provenance, project_id=project.pk, agent=name)
    learnings = learned(answer, phrases=project.takes_phrases)
    rows: list[AgentCapture] = []
    for one in learnings.found:
        statement = one.statement
        if AgentCapture.objects.filter(origin=origin, key=statement.key).exists():
            continue
        own = supported(agent_provenance, one.text) if supported else agent_provenance
        prepared = store.prepare(statement, own)
        with writing():
            try:
                remembered = store.remember(statement, own, at=at, prepared=prepared)
            except DomainError as error:
                remembered = store.Remembered("discarded", reason=str(error))
            rows += note(one, remembered, own, origin=origin, key=statement.key, at=at)
    for refused in learnings.refused:
        rows += note_refused(refused, agent_provenance, origin=origin, at=at)
    if learnings.replaces:
        rows += replace_others(learnings, agent_provenance, origin=origin, at=at)
    return rows


def note(
    one: Learning, remembered: store.Remembered, said: Provenance, *, origin: str, key: str, at: datetime
) -> list[AgentCapture]:
    """Note what became of a learning; [] when it was noted before."""
    return _note(
        said,
        origin,
        key,
        at,
        form=one.form,
        category=one.category,
        text=forgotten.MARK if remembered.is_forgotten else one.statement.observation,
        outcome=OUTCOMES[remembered.outcome],
        reason=remembered.reason[:300],
        memory_id=remembered.memory_id,
    )


def note_refused(refused: Refused, said: Provenance, *, origin: str, at: datetime) -> list[AgentCapture]:
    key = _key("refused", refused.form, refused.text, refused.reason)
    outcome, reason = CaptureOutcome.REFUSED, refused.reason[:300]
    return _note(said, origin, key, at, form=refused.form, text=refused.text, outcome=outcome, reason=reason)


def replace_others(found: Learned, said: Provenance, *, origin: str, at: datetime) -> list[AgentCapture]:
    """Deactivate what an agent left out of its whole memory: of what it was told, its own learnings alone.

    Never a person's. A list that was not taken whole replaces nothing, nor does one after outside text, which may have
    wanted it. Once: what a person reactivates afterwards stays, whenever the answer is read again.
    """
    if why := _replaces_nothing(found, said, origin):
        return note_refused(Refused("memories", "", f"{why}: nothing was deactivated"), said, origin=origin, at=at)
    rows: list[AgentCapture] = []
    with writing():
        stated = {one.statement.observation.lower() for one in found.found}
        own_ids = set(AgentCapture.objects.filter(origin=origin).values_list("memory_id", flat=True))
        for row in _own(said).order_by("pk"):
            if row.pk in own_ids or row.observation.lower() in stated:
                continue
            verbs.deactivate(row, by=said.actor, at=at, reason=LEFT_OUT, session_id=said.session_id)
            rows += _note(
                said,
                origin,
                _key("replaced", str(row.pk)),
                at,
                form="memories",
                category=row.category,
                text=row.observation,
                outcome=CaptureOutcome.REPLACED,
                memory_id=row.pk,
            )
    return rows


def _replaces_nothing(learnings: Learned, provenance: Provenance, origin: str) -> str:
    """Say why a list that states the whole memory replaces nothing; empty when it does."""
    if provenance.exposure == Exposure.OUTSIDE or provenance.taint:
        return "it had read outside text"
    if not learnings.found:
        return "the list is empty"
    keys = {one.statement.key for one in learnings.found}
    count = AgentCapture.objects.filter(origin=origin, key__in=keys, outcome__in=TAKEN).count()
    if count < len(keys) or any(one.form == "memories" for one in learnings.refused):
        return "the list was not taken whole"
    return ""


def _own(provenance: Provenance) -> MemoryQuerySet:
    """Return the active memories that this agent was told and sessions stored, and that no person touched."""
    return Memory.objects.filter(
        ~Exists(MemoryChange.objects.filter(memory=OuterRef("pk"), by=By.PEOPLE)),
        pk__in=provenance.told,
        taxonomy=AGENT.slug,
        project=provenance.project_id,
        agent=provenance.agent,
        active=True,
        source__in=(Source.RUN, Source.LEARNING),
        approved_at=None,
    )


def _note(provenance: Provenance, origin: str, key: str, at: datetime, **values: object) -> list[AgentCapture]:
    if provenance.project_id is None:
        return []
    row, new = AgentCapture.objects.get_or_create(
        origin=origin,
        key=key,
        defaults={
            "project_id": provenance.project_id,
            "agent": provenance.agent or "",
            "session_id": provenance.session_id,
            "at": at,
            **values,
        },
    )
    return [row] if new else []


def _key(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def forget_old(*, at: datetime | None = None) -> int:
    """Delete the rows of more than KEPT ago, in batches; returns how many."""
    before, deleted = (at or timezone.now()) - KEPT, 0
    while ids := list(AgentCapture.objects.filter(at__lt=before).values_list("pk", flat=True)[:BATCH]):
        deleted += AgentCapture.objects.filter(pk__in=ids).delete()[0]
    return deleted
