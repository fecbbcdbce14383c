"""The door of a trace: find what a text is about, follow its way, and say in one sentence where it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memories.capture.text import fold
from memories.models import Memory, ProposalEvidence, Tier, to_utc
from memories.models.memory import ANY_AGENT, ANY_PROJECT
from memories.recall import as_of
from memories.recall.filters import Filters
from memories.recall.query import LONGEST_QUERY
from sessions_app.errors import SessionNotFound
from sessions_app.models import Injected, Purge, Session
from sessions_app.trace import find, in_transcripts
from sessions_app.trace.in_session import InSession, as_if_told, fate_in, moment_of
from sessions_app.trace.place import Shown
from sessions_app.trace.sentence import About, sentence, would_have
from sessions_app.trace.steps import STEP_OF, End, Link, Name, Seen, Step, steps_of
from sessions_app.trace.way import day, quoted, way_of

AT_DESK = Link("the desk", "desk", (), "view=discarded")
EVERYWHERE = Filters(project=ANY_PROJECT, agent=ANY_AGENT)


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do about it: a link, or with `post` a form. `args` are those of the URL named `name`."""

    label: str
    name: str
    args: tuple[int | str, ...] = ()
    query: str = ""
    anchor: str = ""
    post: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """The answer. `sentence` says where it ended, `more` what would have changed that; `ranks` is who came before it.

    `seen_change` is the latest change of the memory, for the form that confirms it.
    """

    asked: str
    end: End
    sentence: str
    more: str
    steps: tuple[Step, ...]
    memory: Memory | None = None
    session: Session | None = None
    others: tuple[find.Near, ...] = ()
    ranks: tuple[Shown, ...] = ()
    found: int = 0
    told: int = 0
    budget: int = 0
    actions: tuple[Action, ...] = ()
    changes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ended_at(self) -> int:
        """The number of the step at which it ended, from 1; 0 when it did not end."""
        last = STEP_OF[self.end]
        return list(Name).index(last) + 1 if last else 0

    @property
    def is_good(self) -> bool:
        return self.end in (End.TOLD, End.KNOWN)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "asked": self.asked,
            "end": self.end.value,
            "sentence": self.sentence,
            "would_have": list(self.changes),
            "memory": self.memory.pk if self.memory else None,
            "session": self.session.pk if self.session else None,
            "steps": [
                {
                    "step": step.name.value,
                    "outcome": step.outcome.value,
                    "text": step.seen.text,
                    "note": step.seen.note,
                    "at": step.seen.at.isoformat() if step.seen.at else None,
                }
                for step in self.steps
            ],
            "ranking": [
                {"rank": row.rank, "memory": row.row.memory_id, "score": round(row.row.score, 4), "tokens": row.tokens}
                for row in self.ranks
                if row.row
            ],
            "nearest": [
                {"memory": one.memory.pk, "text": one.memory.observation, "likeness": round(one.likeness, 3)}
                for one in self.others
            ],
            "notes": list(self.notes),
        }


def trace(
    text: str,
    *,
    session_id: int | None = None,
    at: datetime | None = None,
    scope: Filters = EVERYWHERE,
    with_transcripts: bool = True,
) -> Trace:
    """Follow what `text` says, or the memory that it numbers, into a session's prompt, and say where it ended.

    Without a session: into the latest one that might have been told it. `scope` limits what may be seen, `at` (aware
    UTC, else now) is when it is asked. Raises SessionNotFound.
    """
    when = to_utc(at)
    asked = fold(text[:LONGEST_QUERY])
    session = _session(session_id, scope)
    number = find.number_in(asked)
    near: list[find.Near] = []
    if number is not None:
        row = Memory.objects.isolated_to(scope.project, scope.agent).filter(pk=number).select_related("project").first()
        near = [find.Near(row, 1.0, True)] if row else []
    elif asked:
        near = find.memories_near(asked, scope)
    if near and near[0].is_it:
        return _of_memory(asked, near, session, when, scope, with_transcripts)
    return _without_memory(asked, near, session, when, scope, number, with_transcripts)


def _session(pk: int | None, scope: Filters) -> Session | None:
    if pk is None:
        return None
    rows = Session.objects.select_related("agent", "project")
    if scope.project is None or isinstance(scope.project, int):
        rows = rows.filter(project=scope.project)
    found = rows.filter(pk=pk).first()
    if found is None:
        raise SessionNotFound(f"There is no session {pk}.")
    return found


def _latest(memory: Memory, scope: Filters) -> Session | None:
    """Return the latest session with a receipt that might have been told the memory."""
    rows = Session.objects.filter(receipt__isnull=False, receipt__created_at__gte=memory.created_at)
    if memory.project_id is not None:
        rows = rows.filter(project=memory.project_id)
    elif scope.project is None or isinstance(scope.project, int):
        rows = rows.filter(project=scope.project)
    if memory.agent:
        rows = rows.filter(agent__slug=memory.agent)
    return rows.select_related("agent", "project").order_by("-queued_at", "-id").first()


def _of_memory(
    asked: str,
    near: Sequence[find.Near],
    session: Session | None,
    when: datetime,
    scope: Filters,
    with_transcripts: bool,
) -> Trace:
    now = near[0].memory
    others = tuple(near[1 : 1 + find.NEAREST])
    chosen = session or _latest(now, scope)
    moment = moment_of(chosen) if chosen else when
    memory = now
    if session is None and (today := way_of(now, when, with_transcripts=with_transcripts)).end is not None:
        # It may not be told now, whatever the latest session was told.
        way, fate = today, InSession({}, today.end, changes=as_if_told(now, chosen))
        chosen = None
    else:
        if moment < when:
            then = as_of.as_of([Memory.objects.select_related("project").get(pk=now.pk)], moment)
            if not then:
                return _later(asked, now, others, chosen, with_transcripts)
            memory = then[0]
        way = way_of(memory, moment, with_transcripts=with_transcripts)
        fate = fate_in(chosen, memory, way.end) if chosen else InSession({}, End.KNOWN)
    seen = {**way.seen, **fate.seen}
    own = fate.end is way.end
    about = About(
        memory=memory.pk,
        session=chosen.pk if chosen else None,
        other=memory.superseded_by_id,
        day=day(way.at) if own else "",
        reason=way.reason if own else fate.reason,
        rank=fate.rank,
        told=fate.told,
    )
    more = list(fate.changes)
    notes = tuple(filter(None, (_proposed(memory), _told_before(memory, fate))))
    return Trace(
        asked=asked,
        end=fate.end,
        sentence=sentence(fate.end, about),
        more=would_have(more),
        steps=steps_of(seen, fate.end),
        memory=now,
        session=chosen,
        others=others,
        ranks=fate.ranks,
        found=fate.ranking.eligible if fate.ranking else 0,
        told=fate.told,
        budget=fate.ranking.budget if fate.ranking else 0,
        actions=_actions(now, chosen, fate),
        changes=tuple(more),
        notes=notes,
    )


def _later(
    asked: str, memory: Memory, others: tuple[find.Near, ...], session: Session | None, with_transcripts: bool
) -> Trace:
    way = way_of(memory, memory.created_at, with_transcripts=with_transcripts)
    seen = {**way.seen, Name.STORE: replace(way.seen[Name.STORE], note="after the session had begun")}
    about = About(memory=memory.pk, session=session.pk if session else None, day=day(memory.created_at))
    return Trace(
        asked, End.LATER, sentence(End.LATER, about), "", steps_of(seen, End.LATER), memory, session, others,
        actions=_actions(memory, session, None),
    )  # fmt: skip


def _without_memory(
    asked: str,
    near: Sequence[find.Near],
    session: Session | None,
    when: datetime,
    scope: Filters,
    number: int | None,
    with_transcripts: bool,
) -> Trace:
    nearest = tuple(near[: find.NEAREST])
    may_see_all = scope.project == ANY_PROJECT
    seen: dict[Name, Seen] = {}
    about = About(nearest=tuple(one.memory.pk for one in nearest))
    end = End.NEVER_WRITTEN
    actions: tuple[Action, ...] = (Action("Add it as a memory", "memories", anchor="add"),)
    if asked and number is None and (discard := find.discard_of(asked, when, scope)):
        end = End.DISCARDED
        about = replace(about, day=day(discard.at), reason=discard.words or ", ".join(discard.reasons))
        seen[Name.TRANSCRIPT] = _said_by(discard.session_id, discard.text, discard.at)
        seen[Name.GATE] = Seen(
            "Discarded it", about.reason, at=discard.at, link=Link("the desk", "desk", (), "view=discarded")
        )
        actions = (Action("Decide on it at the desk", "desk", query="view=discarded"),)
    elif asked and number is None and may_see_all and (deleted := find.deleted_of(asked)):
        end = End.DELETED
        before = deleted.before or {}
        about = replace(about, day=day(deleted.at), reason=f"by {deleted.actor}" if deleted.actor else "")
        seen[Name.TRANSCRIPT] = _said_by(before.get("session_id"), str(before.get("observation")), None)
        seen[Name.GATE] = Seen("Allowed it") if before.get("verdict") != "hold" else Seen("Held it for review")
        seen[Name.STORE] = Seen("Kept it; since then deleted", deleted.reason or f"by {deleted.actor}", at=deleted.at)
    elif number is not None and may_see_all and Injected.objects.filter(memory_id=number).exists():
        end = End.DELETED
        about = replace(about, memory=number)
        last = Injected.objects.filter(memory_id=number).order_by("-session").values_list("session", flat=True).first()
        where = Link(f"session {last}", "session", (last or 0,))
        seen[Name.STORE] = Seen("It is not there any more", f"session {last} was the last that was told it", link=where)
    elif asked and number is None and (line := find.line_of(asked, session, scope)):
        end = line.end
        about = replace(about, session=line.session_id, day=day(line.at), reason=line.reason)
        where = Link(f"line {line.seq}", "session-log", (line.session_id,), f"at={line.seq}")
        seen[Name.TRANSCRIPT] = Seen(
            f"Session {line.session_id} said it", quoted(line.text.strip()), at=line.at, link=where
        )
        seen[Name.STORE] = Seen("No memory of it is there", "deleted since, or discarded more than 14 days ago")
    elif asked and number is None and with_transcripts and (said := in_transcripts.said_in(asked, scope)):
        end = End.NOT_KEPT
        where = Link(said.transcript.source_name, "transcript", (said.transcript.pk,))
        about = replace(about, session=said.transcript.session_id, day=day(said.at), reason=said.why.rstrip("."))
        seen[Name.TRANSCRIPT] = Seen(
            f"{said.what} in {said.transcript.source_name}", quoted(said.text) or said.why, at=said.at, link=where
        )
    elif asked and number is None and with_transcripts and (segment := find.segment_of(asked, scope)):
        end = End.ONLY_SAID
        where = Link(segment.source, "transcript", (segment.transcript,))
        about = replace(about, day=day(segment.at))
        seen[Name.TRANSCRIPT] = Seen(
            "An observed session was about it", quoted(segment.narrative), at=segment.at, link=where
        )
    if end is End.NEVER_WRITTEN:
        looked = (
            f"the first {find.LINES:,} lines of the latest {find.SESSIONS} sessions"
            if session is None
            else f"session {session.pk}"
        )
        if with_transcripts:
            looked += f", and the latest {find.SESSIONS} observed transcripts of this host"
        seen[Name.TRANSCRIPT] = Seen("No session wrote it", f"looked through all memories, and through {looked}")
    proposal = find.proposal_of(asked, scope) if asked and number is None else None
    notes = []
    if proposal is not None:
        became = ": ".join(filter(None, (proposal.get_state_display(), proposal.why.rstrip("."))))
        notes.append(f"Proposal {proposal.pk} for {proposal.file} says so; {became}.")
    if end is End.NEVER_WRITTEN and may_see_all and Purge.objects.filter(state="done").exists():
        notes.append("What a purge removed leaves nothing to find; there were purges.")
    return Trace(
        asked, end, sentence(end, about), "", steps_of(seen, end), None, session, nearest, actions=actions,
        notes=tuple(notes),
    )  # fmt: skip


def _said_by(session_id: Any, text: str, at: datetime | None) -> Seen:
    if isinstance(session_id, int):
        return Seen(
            f"Session {session_id} wrote it",
            quoted(text),
            at=at,
            link=Link(f"session {session_id}", "session", (session_id,)),
        )
    return Seen("It was said", quoted(text), at=at)


def _proposed(memory: Memory) -> str:
    """Say what became of the proposals for MEMORY.md that the memory is evidence of."""
    rows = ProposalEvidence.objects.filter(memory=memory.pk).select_related("proposal__file").order_by("-id")
    found = rows.first()
    if found is None:
        return ""
    proposal = found.proposal
    why = f": {proposal.why}" if proposal.why else ""
    tier = Tier(proposal.tier).label if proposal.tier in Tier.values else ""
    waits = f" (tier {proposal.tier}, {tier})" if proposal.state == "waiting" else ""
    return f"It was proposed for {proposal.file} (proposal {proposal.pk}): {proposal.get_state_display()}{waits}{why}."


def _told_before(memory: Memory, fate: InSession) -> str:
    if fate.end is End.TOLD or not memory.told_count:
        return ""
    many = "session was" if memory.told_count == 1 else "sessions were"
    last = f", the last on {day(memory.last_told_at)}" if memory.last_told_at else ""
    return f"{memory.told_count:,} {many} told it before{last}."


def _actions(memory: Memory, session: Session | None, fate: InSession | None) -> tuple[Action, ...]:
    """Return what a person can do now, by the present state of the memory."""
    pk = memory.pk
    found: list[Action] = []
    if memory.waits:
        found.append(Action(f"Decide on memory {pk}", "memory", (pk,)))
    elif not memory.active:
        if memory.superseded_by_id:
            found.append(Action(f"See memory {memory.superseded_by_id}", "memory", (memory.superseded_by_id,)))
        found.append(Action(f"Activate memory {pk}", "memory-activate", (pk,), post=True))
    elif fate is not None and fate.end is not End.TOLD:
        found.append(Action(f"Confirm memory {pk}", "memory-confirm", (pk,), post=True))
    agent = session.agent if session else None
    if fate is not None and fate.word and agent is not None:
        found.append(Action(f"Name {fate.word} in {agent.slug}’s task", "agent", (agent.slug,), "tab=prompt"))
    if (
        fate is not None
        and fate.more_tokens
        and session is not None
        and memory.taxonomy == "project"
        and session.project
    ):
        found.append(Action("Give the project a larger budget", "project-settings", (session.project.slug,)))
    if fate is None or fate.end is not End.KNOWN:
        query = f"tier={session.tier}" + (f"&agent={agent.slug}" if agent else "") if session else ""
        found.append(Action("See the next prompt", "preview", (), query))
    return tuple(found)
