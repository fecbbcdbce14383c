"""Whole sessions of the CLI: what they are told when they start and by their prompts, and that they are observed.

The transcript is the truth and a hook only a hint: what a hook misses, the sweep of the transcripts finds.
"""

from __future__ import annotations

import hashlib
from functools import partial

from django.conf import settings

from memories.injection.foremost import foremost
from memories.models import Memory, Project
from sessions_app.hooks import news, receipts
from sessions_app.hooks.answers import HANDLERS, LATER, HookAnswer, HookCall
from sessions_app.hooks.briefing import Briefing, Line, Section, compose, line
from sessions_app.models import HookReceipt, Injected

START, PROMPT = "SessionStart", "UserPromptSubmit"
FRESH = ("startup", "clear", "compact")
"""Why a session starts with nothing of what it was told before."""
MOST_MEMORIES = 24


def brief(call: HookCall) -> HookAnswer | None:
    """Tell a session that starts, or goes on after a compaction, what its project should know now."""
    budget = settings.CLAUDEOPS_BRIEFING_BUDGET
    if call.project is None or not budget:
        return None
    found = briefing(call, call.project, budget=budget)
    if not found.text:
        return None
    # A session starts several times; the same text again is the same hook sent twice.
    part = f"{call.payload.source[:20]}:{hashlib.sha256(found.text.encode()).hexdigest()[:32]}"
    return HookAnswer(
        context=found.text, keep=partial(receipts.keep, call, part=part, text=found.text, included=found.included)
    )


def briefing(call: HookCall, project: Project, *, budget: int) -> Briefing:
    """Compose the briefing; for one of our own sessions without what its prompt says already."""
    told = _told(call, prompts_too=call.payload.source not in FRESH)
    known = foremost(project.pk, most=MOST_MEMORIES, without=told, at=call.at)
    sections = [
        Section("Limits in force", [] if call.session else news.limits_in_force(call.at)),
        Section("Events of the last day", news.events_of(project, call.at)),
        Section("Sessions of the last day", news.sessions_of(project, call.at)),
        Section("Memories", [_line(one) for one in known]),
    ]
    return compose(project.name or project.slug, sections, budget=budget)


def _line(memory: Memory) -> Line:
    label = f"{memory.category}, {memory.service}" if memory.service else memory.category
    entry = {
        "id": memory.pk,
        "category": memory.category,
        "confidence": memory.confidence,
        "observation": memory.observation,
    }
    return line(memory.observation, label=label, memory=entry)


def _told(call: HookCall, *, prompts_too: bool) -> set[int]:
    """Return the ids of the memories that a session has been given: in its prompt, if it is ours, and by its hooks."""
    found: set[int] = set()
    if call.session:
        found |= set(Injected.objects.filter(session=call.session).values_list("memory_id", flat=True))
    if prompts_too:
        rows = HookReceipt.objects.filter(cli_session_id=call.payload.cli_session_id, event__in=(START, PROMPT))
        found |= {entry["id"] for included in rows.values_list("included", flat=True) for entry in included}
    return found


def count(call: HookCall) -> None:
    """Count what a session was told when it started."""
    receipts.count(HookReceipt.objects.filter(cli_session_id=call.payload.cli_session_id, event=START))


HANDLERS[START].append(brief)
LATER[START].append(count)
