"""Know a person's words and an agent's hands: which prompts a person typed, and which agents were at work when.

The receipt of a prompt precedes every tool. The prompt itself goes nowhere: its hash is kept. A receipt stops a
transcript that somebody made up. It does not stop an agent that runs as the same user and hides on purpose
(docs/security.md).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import Case, F, Q, When

from memories.models import Project
from sessions_app.hooks.events import HANDLERS, HookAnswer, HookCall
from sessions_app.models import PromptReceipt, Runner, Session
from sessions_app.models.session import OPEN_STATUSES
from sessions_app.runner.turns import prompt_hash

START, PROMPT, END = "SessionStart", "UserPromptSubmit", "SessionEnd"
AFTER = timedelta(minutes=5)
"""How long after its end something of a session may still write."""
SILENT = timedelta(hours=24)
"""A session without a hook for so long has ended, though nothing said so."""
UNWATCHED = "no hook of ours has been heard from this project's folder (manage.py hook install --observe)"


def prove(call: HookCall) -> HookAnswer | None:
    """Keep the receipt of a prompt, or of the start of a session; of one of ours the own log is the proof."""
    return None if call.session else HookAnswer(keep=partial(_keep, call))


def _keep(call: HookCall) -> None:
    session = call.payload.cli_session_id
    new = {"at": call.at, "heard_at": call.at, "by_agent": call.payload.by_agent, "project": call.project}
    new["transcript_path"] = call.payload.transcript_path[:500]
    receipts = [PromptReceipt(cli_session_id=session, **new)]
    if call.event == PROMPT:
        receipts.append(PromptReceipt(cli_session_id=session, prompt=prompt_hash(call.payload.prompt), **new))
    PromptReceipt.objects.bulk_create(receipts, ignore_conflicts=True)
    heard: dict[str, Any] = {"heard_at": call.at, "ended_at": None}
    if call.payload.by_agent:  # a later start, such as a resume, by an agent
        heard["by_agent"] = True
    # In more than one folder it may write in any.
    heard["project"] = Case(When(project=call.project, then=F("project")), default=None)
    PromptReceipt.objects.filter(cli_session_id=session, prompt="").update(**heard)


def end(call: HookCall) -> HookAnswer | None:
    """Note that a session has ended."""
    mine = PromptReceipt.objects.filter(cli_session_id=call.payload.cli_session_id, prompt="")
    return None if call.session else HookAnswer(keep=partial(mine.update, ended_at=call.at))


def at_work(project: Project | None, since: datetime, until: datetime) -> str:
    """Say which agent may have written in the folder of a project (None: in any) between two times (UTC).

    A session of ours in no project may have written anywhere. Where no hook of a developer's CLI was ever heard,
    nobody knows.
    """
    anywhere = project is None
    ours = Session.objects.exclude(runner=Runner.REPLAY).filter(started_at__lte=until)
    ours = ours.filter(Q(ended_at__gte=since - AFTER) | Q(ended_at=None, status__in=OPEN_STATUSES))
    if not anywhere:
        ours = ours.filter(Q(project=project) | Q(project=None))
    if session := ours.order_by("pk").first():
        return f"session {session.pk} was at work"
    others = PromptReceipt.objects.filter(prompt="")
    if not anywhere:
        others = others.filter(Q(project=project) | Q(project=None))
    open_or_late = Q(ended_at__gte=since - AFTER) | Q(ended_at=None, heard_at__gte=since - SILENT)
    if receipt := others.filter(open_or_late, at__lte=until).order_by("pk").first():
        return f"session {receipt.cli_session_id[:36]} of the CLI was at work"
    watched = others if anywhere else others.filter(project=project)
    return "" if watched.exists() else UNWATCHED


HANDLERS[START].append(prove)
HANDLERS[PROMPT].append(prove)
HANDLERS[END].append(end)
