"""Reflect on the observations of a file: choose, ask the reflector, store its answer, make proposals of it.

A reflection is claimed by a conditional UPDATE and goes through `asked`, `answered`, `done`; what each step makes is
stored in the transaction that ends it. Killed in between, the next run goes on behind what is stored. Times are UTC.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Max

from claudeops.lib.domain_error import DomainError
from claudeops.lib.lease import Lease
from memories.curate import document, files, proposals
from memories.curate.reflection.answer import FoundProposal, Parsed, parse
from memories.curate.reflection.choose import Choice, choose, due, note_shown, section_of, shown, usable
from memories.curate.reflection.evidence import evidence_of
from memories.curate.reflection.message import INSTRUCTIONS, ShownEntry, entries_of, framed, message
from memories.curate.repeats import Repeats
from memories.llm import Answer, Reason, Unavailable, ask
from memories.llm.roles import chosen
from memories.models import (
    Memory,
    MemoryFile,
    Project,
    ProposalKind,
    Reflection,
    ReflectionState,
    Tier,
    to_utc,
)
from memories.telemetry import record

OPEN = (ReflectionState.ASKED, ReflectionState.ANSWERED)
LEASE = Lease(timedelta(minutes=10))
"""A call takes at most the time of its role."""
TRIES = 3
"""Unreadable answers after which a reflection has failed; its observations are part of the next one."""
TASK_CALL, TASK_SECONDS = 200.0, 60.0
"""Seconds of a call of the task, and after which none begins: the queue ends a task after 300 seconds."""
NOTHING, BUSY, WAITING, FAILED, DONE = "nothing", "busy", "waiting", "failed", "done"


@dataclass(slots=True)
class Done:
    """What a run did for one file. `outcome` is nothing, busy (another worker has it), waiting, failed or done.

    `counts` has observations, made (proposals), rejected (if any), repeated, gone and unread. `why` says why it is not
    done.
    """

    project: str
    outcome: str
    why: str = ""
    reflection: int | None = None
    number: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def reflect_due(*, at: datetime | None = None) -> list[Done]:
    """Reflect for each scope for which it is due, and finish what was begun; the run of the task."""
    when, begun, results = to_utc(at), time.monotonic(), []
    for project in scopes():
        if time.monotonic() - begun >= TASK_SECONDS:
            break
        file = MemoryFile.objects.filter(project=project).first()
        is_open = file is not None and Reflection.objects.filter(file=file, state__in=OPEN).exists()
        if is_open or (not chosen("reflector").off and due(project, file, when).is_due):
            results.append(reflect(project, at=at, seconds=TASK_CALL, source="schedule"))
    return results


def scopes() -> list[Project | None]:
    """Return what has a file of its own: everything (None), and each project."""
    return [None, *Project.objects.order_by("pk")]


def reflect(
    project: Project | None, *, at: datetime | None = None, seconds: float | None = None, source: str = "command"
) -> Done:
    """Reflect on what is new for the file of `project` (None: the global one), however little, or finish what is open.

    `seconds` bounds the call (the role's time when None). Call it outside of a transaction.
    """
    when, begun = to_utc(at), time.monotonic()
    name = project.slug if project else ""
    off = chosen("reflector").off
    if off:
        return Done(name, WAITING, off)
    row = _claim(project, when)
    if isinstance(row, str):
        return Done(name, row, "another worker reflects on it" if row == BUSY else "nothing is new")
    if row.state == ReflectionState.ASKED:
        answer: Answer[str] | Unavailable = ask("reflector", INSTRUCTIONS, row.text, seconds=seconds)
        if (why := _store(row, answer, when)) is not None:
            return _not_answered(row, name, why, when, begun, source)
    return _carry_out(row.pk, name, to_utc(at), begun, source)


def _claim(project: Project | None, at: datetime) -> Reflection | str:
    """Return the reflection of a scope that is to go on, claimed: the open one, or a new one; else BUSY or NOTHING.

    What no model has answered yet is chosen anew, and MEMORY.md read anew, so that neither is older than the call.
    """
    file = files.read(files.file_of(project), at=at)
    me = f"{settings.CLAUDEOPS_HOST}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    with transaction.atomic():
        number = Reflection.objects.filter(file=file).aggregate(last=Max("number"))["last"] or 0
        row = Reflection.objects.filter(file=file, state__in=OPEN).order_by("number").first()
        if row is None:
            choice = choose(project, file, at)
            if not choice.memories:
                return NOTHING
            try:
                with transaction.atomic():
                    mine = {"claimed_by": me, "claimed_until": LEASE.claimed(at)}
                    return Reflection.objects.create(file=file, number=number + 1, **_asked(file, choice), **mine)
            except IntegrityError:  # another worker made it
                return BUSY
        if not LEASE.take(Reflection.objects.filter(pk=row.pk, state=row.state), at, claimed_by=me):
            return BUSY
        if row.state == ReflectionState.ASKED:
            choice = choose(project, file, at)
            values = (
                _asked(file, choice) if choice.memories else {"state": ReflectionState.DONE, "done_at": at, "text": ""}
            )
            Reflection.objects.filter(pk=row.pk).update(**values)
    row.refresh_from_db()
    return NOTHING if row.state == ReflectionState.DONE else row


def preview(project: Project | None, at: datetime | None = None) -> tuple[Choice, dict[str, Any]]:
    """Return what a reflection now would choose, and the columns of its row; nothing is stored or asked."""
    file = MemoryFile.objects.filter(project=project).first()
    choice = choose(project, file, to_utc(at))
    return choice, _asked(file, choice)


def _asked(file: MemoryFile | None, choice: Choice) -> dict[str, Any]:
    """Return the columns of a reflection that was chosen."""
    entries = document.parse(file.text).entries if file else ()
    shown_entries = [ShownEntry(one.section, f"{one.date or ''}", one.text) for one in entries]
    text, target = message([shown(one) for one in choice.memories], shown_entries, most_entries=document.MOST)
    return {
        "until": choice.until,
        "observations": [one.pk for one in choice.memories],
        "text": text,
        "shown_sha256": file.sha256 if file else "",
        "target_tokens": list(target),
    }


def _store(row: Reflection, answer: Answer[str] | Unavailable, at: datetime) -> str | None:
    """Store an answer before anything follows from it; return why there is none, "" when another worker has it."""
    mine = Reflection.objects.filter(pk=row.pk, state=ReflectionState.ASKED, claimed_by=row.claimed_by)
    if isinstance(answer, Answer):
        parsed = parse(answer.value)
        if parsed.is_answer:
            stored = mine.update(
                state=ReflectionState.ANSWERED,
                answer=answer.value,
                prompt_hash=answer.prompt_hash,
                model=answer.model[:100],
                call=answer.call_id,
                problem="",
                unread=list(parsed.unread),
            )
            return None if stored else ""
        why, is_unreadable = "; ".join(parsed.unread) or "it holds no proposal", True
    else:
        why, is_unreadable = answer.why, answer.reason == Reason.UNREADABLE
    why = f"the answer cannot be read: {why}"[:500] if is_unreadable else why[:500]
    with transaction.atomic():
        mine.update(problem=why, attempts=F("attempts") + int(is_unreadable), claimed_until=None)
        mine.filter(attempts__gte=TRIES).update(state=ReflectionState.FAILED, done_at=at, text="")
    return why


def _not_answered(row: Reflection, name: str, why: str, at: datetime, begun: float, source: str) -> Done:
    row.refresh_from_db()
    is_failed = row.state == ReflectionState.FAILED
    if is_failed:
        _report(row, "failed", {"observations": len(row.observations), "attempts": row.attempts}, at, begun, source)
    outcome = FAILED if is_failed else WAITING if why else BUSY
    return Done(name, outcome, why or "another worker reflects on it", row.pk, row.number)


def _carry_out(pk: int, name: str, at: datetime, begun: float, source: str) -> Done:
    """Make the proposals of a stored answer and end the reflection, in one transaction; nothing the second time."""
    with transaction.atomic():
        rows = Reflection.objects.select_for_update(of=("self",)).select_related("file__project")
        row = rows.filter(pk=pk, state=ReflectionState.ANSWERED).first()
        if row is None:
            return Done(name, BUSY, "another worker has ended it", pk)
        note_shown(row)
        making = _Making(row, at)
        parsed = parse(row.answer)
        making.make(parsed)
        counts = {"observations": len(row.observations), **making.counts, "unread": len(making.unread)}
        Reflection.objects.filter(pk=pk).update(
            state=ReflectionState.DONE,
            done_at=at,
            text="",
            counts=counts,
            unread=making.unread,
            problem="",
            claimed_until=None,
        )
        _report(row, "completed", counts, at, begun, source)
    return Done(name, DONE, "", pk, row.number, counts, making.unread)


class _Making:
    """The proposals of one answer."""

    def __init__(self, row: Reflection, at: datetime) -> None:
        self.row, self.at = row, at
        self.shown = entries_of(row.text)
        self.entries = {framed(one.text): one for one in document.parse(row.file.text).entries}
        by_id = Memory.objects.in_bulk(row.observations)
        self.memories = [by_id.get(pk) for pk in row.observations]
        allowed = usable(row.file.project).filter(pk__in=row.observations)
        self.usable = set(allowed.values_list("pk", flat=True))
        self.texts = [shown(one).text if one else "" for one in self.memories]
        self.repeats = Repeats(row.file)
        self.counts: Counter[str] = Counter(made=0, repeated=0, gone=0)
        self.unread: list[str] = []

    def make(self, parsed: Parsed) -> None:
        self.unread = list(parsed.unread)
        for place, one in enumerate(parsed.proposals, start=1):
            self._make(one, place)

    def _make(self, one: FoundProposal, place: int) -> None:
        target = self._target(one)
        if one.kind != ProposalKind.ADD and not target:
            self.unread.append(f"proposal {place}: there is no entry {one.entry}")
            return
        text = "" if one.kind == ProposalKind.REMOVE else one.text
        claimed = [number - 1 for number in one.evidence]
        if any(self._is_gone(at) for at in claimed if at < len(self.memories)):
            self.counts["gone"] += 1
            return
        carried = evidence_of(text, target, claimed, self.texts)
        evidence = [memory for at in carried.places if (memory := self.memories[at])]
        if self.repeats.has(one.kind, text, target):
            self.counts["repeated"] += 1
            return
        try:
            row = proposals.propose(
                self.row.file,
                one.kind,
                self._section(one, target, evidence),
                text=text,
                target=target,
                evidence=evidence,
                confidence=min((memory.confidence for memory in evidence), default=None),
                by=f"reflector:{self.row.model}",
                own_words=not carried.is_whole,
                key=f"reflection:{self.row.pk}:{place}",
                reflection=self.row,
                at=self.at,
            )
            if carried.why:
                proposals.reject(
                    row.pk, by=proposals.SYSTEM, tier=Tier.RULES, reason=carried.why, rule="not-carried", at=self.at
                )
        except DomainError as error:
            self.unread.append(f"proposal {place}: {error}")
            return
        self.repeats.note(one.kind, text, target)
        self.counts["rejected" if carried.why else "made"] += 1

    def _target(self, one: FoundProposal) -> str:
        """Return the text of the entry that a proposal changes or removes, as the file has it; "" for none."""
        text = one.target
        if one.entry is not None:
            text = self.shown[one.entry - 1] if 1 <= one.entry <= len(self.shown) else ""
        entry = self.entries.get(framed(text))
        return entry.text if entry else text

    def _is_gone(self, at: int) -> bool:
        """Whether an observation was deleted, deactivated or held since it was shown."""
        memory = self.memories[at]
        return memory is None or memory.pk not in self.usable

    def _section(self, one: FoundProposal, target: str, evidence: Sequence[Memory]) -> str:
        """Return the section of a proposal: that of its entry, that which the reflector named, or its evidence's."""
        entry = self.entries.get(framed(target)) if target else None
        if entry is not None and entry.section in document.SECTIONS:
            return entry.section
        return one.section or (section_of(evidence[0]) if evidence else "operations")


def _report(row: Reflection, outcome: str, counts: dict[str, Any], at: datetime, begun: float, source: str) -> None:
    record(
        f"memory.reflect.{outcome}",
        component="reflection",
        source=source,
        success=outcome == "completed",
        duration_ms=int((time.monotonic() - begun) * 1000),
        key=f"memory.reflect:{row.pk}",
        at=at,
        reflection=row.pk,
        **counts,
    )
