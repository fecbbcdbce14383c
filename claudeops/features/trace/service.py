"""The door of a trace: find what a text is about, read its steps, and say in one sentence where it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from claudeops.features.trace import find
from claudeops.features.trace.document import Near, Trace
from claudeops.features.trace.in_session import as_if_told, moment_of, read_session
from claudeops.features.trace.in_store import read_memory
from claudeops.features.trace.in_transcripts import in_transcripts
from claudeops.features.trace.steps import End, Link, Name, Seen
from memories.capture.text import fold
from memories.models import Memory, ProposalEvidence, Tier, to_utc
from memories.models.memory import ANY_AGENT, ANY_PROJECT
from memories.recall import as_of
from memories.recall.filters import Filters
from memories.recall.query import LONGEST_QUERY
from sessions_app.errors import SessionNotFound
from sessions_app.models import Injected, Purge, Session

EVERYWHERE = Filters(project=ANY_PROJECT, agent=ANY_AGENT)


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
    trail = Trace(fold(text[:LONGEST_QUERY]), _session(session_id, scope))
    number = find.number_in(trail.asked)
    near: Sequence[Near] = ()
    if number is not None:
        rows = Memory.objects.isolated_to(scope.project, scope.agent).select_related("project")
        near = [Near(row, 1.0, True) for row in rows.filter(pk=number)]
    elif trail.asked:
        near = find.memories_near(trail.asked, scope)
    if near and near[0].is_it:
        trail.memory, trail.others = near[0].memory, near[1 : 1 + find.NEAREST]
        _of_memory(trail, near[0].memory, to_utc(at), scope, with_transcripts)
    else:
        trail.others = near[: find.NEAREST]
        _without_memory(trail, number, to_utc(at), scope, with_transcripts)
    return trail


def _session(pk: int | None, scope: Filters) -> Session | None:
    if pk is None:
        return None
    rows = Session.objects.select_related("agent", "project")
    if find.is_one(scope.project):
        rows = rows.filter(project=scope.project)
    session = rows.filter(pk=pk).first()
    if session is None:
        raise SessionNotFound(f"There is no session {pk}.")
    return session


def _latest(memory: Memory, scope: Filters) -> Session | None:
    """Return the latest session with a receipt that might have been told the memory."""
    rows = Session.objects.filter(receipt__isnull=False, receipt__created_at__gte=memory.created_at)
    if memory.project_id is not None:
        rows = rows.filter(project=memory.project_id)
    elif find.is_one(scope.project):
        rows = rows.filter(project=scope.project)
    if memory.agent:
        rows = rows.filter(agent__slug=memory.agent)
    return rows.select_related("agent", "project").order_by("-queued_at", "-id").first()


def _of_memory(trail: Trace, memory: Memory, when: datetime, scope: Filters, with_transcripts: bool) -> None:
    now, session = memory, trail.session or _latest(memory, scope)
    if trail.session is None:
        read_memory(trail, memory, when, with_transcripts=with_transcripts)
    if trail.end is not End.KNOWN:  # it may not be told now, whatever the latest session was told
        trail.changes = as_if_told(memory, session)
    else:
        trail.session = session
        moment = moment_of(session) if session else when
        stored = Memory.objects.select_related("project")
        then = [memory] if moment >= when else as_of.as_of([stored.get(pk=memory.pk)], moment)
        if then:
            memory = then[0]
            read_memory(trail, memory, moment, with_transcripts=with_transcripts)
            if session:
                read_session(trail, session, memory)
        else:
            read_memory(trail, memory, memory.created_at, with_transcripts=with_transcripts)
            trail.seen[Name.STORE] = replace(trail.seen[Name.STORE], note="after the session had begun")
            trail.ended(End.LATER, day=find.day(memory.created_at))
    trail.facts |= {
        "memory": memory.pk,
        "session": trail.session.pk if trail.session else None,
        "other": memory.superseded_by_id,
    }
    if trail.end is not End.LATER:
        trail.notes = [note for note in (_proposed(memory), _told_before(memory, trail.end)) if note]
    trail.actions = _actions(trail, now)


def _without_memory(trail: Trace, number: int | None, when: datetime, scope: Filters, with_transcripts: bool) -> None:
    may_see_all = scope.project == ANY_PROJECT
    trail.actions = [Link("Add it as a memory", "memories", anchor="add")]
    if number is not None:
        sessions = Injected.objects.filter(memory_id=number).order_by("-session").values_list("session", flat=True)
        last = sessions.first() if may_see_all else None
        if last is not None:
            trail.ended(End.DELETED, memory=number)
            note = f"session {last} was the last that was told it"
            trail.seen[Name.STORE] = Seen("It is not there any more", note, link=Link.to("session", last))
        is_found = last is not None
    elif trail.asked:
        is_found = (
            find.discarded(trail, scope, when)
            or (may_see_all and find.deleted(trail))
            or find.in_logs(trail, scope)
            or (with_transcripts and (in_transcripts(trail, scope) or find.in_narratives(trail, scope)))
        )
        if trail.end is End.DISCARDED:
            trail.actions = [Link("Decide on it in the inbox", "inbox", query="view=discarded")]
        if proposal := find.proposal_of(trail.asked, scope):
            became = ": ".join(filter(None, (proposal.get_state_display(), proposal.why.rstrip("."))))
            trail.notes.append(f"Proposal {proposal.pk} for {proposal.file} says so; {became}.")
    else:
        is_found = False
    if is_found:
        return
    trail.ended(End.NEVER_WRITTEN, nearest=[one.memory.pk for one in trail.others])
    latest = f"the first {find.LINES:,} lines of the latest {find.SESSIONS} sessions"
    looked = f"session {trail.session.pk}" if trail.session else latest
    if with_transcripts:
        looked += f", and the latest {find.SESSIONS} observed transcripts of this host"
    trail.seen[Name.TRANSCRIPT] = Seen("No session wrote it", f"looked through all memories, and through {looked}")
    if may_see_all and Purge.objects.filter(state="done").exists():
        trail.notes.append("What a purge removed leaves nothing to find; there were purges.")


def _proposed(memory: Memory) -> str:
    """Say what became of the proposals for MEMORY.md that the memory is evidence of."""
    rows = ProposalEvidence.objects.filter(memory=memory.pk).select_related("proposal__file").order_by("-id")
    evidence = rows.first()
    if evidence is None:
        return ""
    proposal = evidence.proposal
    why = f": {proposal.why}" if proposal.why else ""
    tier = Tier(proposal.tier).label if proposal.tier in Tier.values else ""
    waits = f" (tier {proposal.tier}, {tier})" if proposal.state == "waiting" else ""
    return f"It was proposed for {proposal.file} (proposal {proposal.pk}): {proposal.get_state_display()}{waits}{why}."


def _told_before(memory: Memory, end: End) -> str:
    if end is End.TOLD or not memory.told_count:
        return ""
    many = "session was" if memory.told_count == 1 else "sessions were"
    last = f", the last on {find.day(memory.last_told_at)}" if memory.last_told_at else ""
    return f"{memory.told_count:,} {many} told it before{last}."


def _actions(trail: Trace, memory: Memory) -> list[Link]:
    """Return what a person can do now, by the present state of the memory."""
    pk, session = memory.pk, trail.session
    actions: list[Link] = []
    if memory.waits:
        actions.append(Link(f"Decide on memory {pk}", "memory", (pk,)))
    elif not memory.active:
        if newer := memory.superseded_by_id:
            actions.append(Link(f"See memory {newer}", "memory", (newer,)))
        actions.append(Link(f"Activate memory {pk}", "memory-activate", (pk,), post=True))
    elif trail.end not in (End.TOLD, End.LATER):
        actions.append(Link(f"Confirm memory {pk}", "memory-confirm", (pk,), post=True))
    agent = session.agent if session else None
    if trail.word and agent:
        actions.append(Link(f"Name {trail.word} in {agent.slug}’s task", "agent", (agent.slug,), "tab=prompt"))
    if trail.needs_tokens and session and session.project and memory.taxonomy == "project":
        slug = session.project.slug
        actions.append(Link("Give the project a larger budget", "project-settings", (slug,)))
    if trail.end is not End.KNOWN:
        query = f"tier={session.tier}" + (f"&agent={agent.slug}" if agent else "") if session else ""
        actions.append(Link("See the next prompt", "ask", query=query))
    return actions
