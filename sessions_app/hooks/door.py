"""Answer one hook of the CLI: who calls, for which project, what its handlers say, and what a worker does later."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any, NoReturn

from django.db import DatabaseError, transaction
from django.utils import timezone

from claudeops.lib import outage
from claudeops.lib.secrets import mask, mask_value
from memories.access import note_use
from memories.models import Project
from memories.telemetry import record
from sessions_app.errors import HookFailed, SessionsError
from sessions_app.hooks import cooldowns, decisions, delegation, last_heard_from, news, observing, proof
from sessions_app.hooks.callers import Caller, caller_of
from sessions_app.hooks.events import HANDLERS, LATER, HookAnswer, HookCall, Payload, document, known, parse
from sessions_app.models import Session
from sessions_app.queue import tasks
from sessions_app.transcripts.place import project_at

REGISTERED = (cooldowns, decisions, delegation, news, observing, proof)
"""The modules whose handlers are in the tables: importing one registers them."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """The JSON for the CLI, or the error. `note` records the call in the database: for after the reply is sent."""

    document: dict[str, Any]
    error: SessionsError | None
    note: Callable[[], None]


def answer(
    event: str, secret: str, data: Callable[[], bytes], *, by_agent: bool = False, at: datetime | None = None
) -> Reply:
    """Answer a hook whose caller has `secret`; `data` reads the posted JSON, once the caller is known.

    `by_agent`: the command of the hook says that another agent had started this CLI.

    Raises UnknownHook, UnknownCaller, AccessDenied and TooManyHooks. What fails after that is the reply's error.
    """
    at = at or timezone.now()
    known(event)
    caller = caller_of(secret, at=at)
    output, error = {}, None
    try:
        call = _call(event, caller, parse(event, data(), by_agent=by_agent), at)
        answers = _answers(call)
        output = document(event, answers)
        is_told = "additionalContext" in output.get("hookSpecificOutput", {})
        _store(call, [answer.keep for answer in answers if answer.keep and (is_told or not answer.context)])
    except SessionsError as refused:
        error = refused
    return Reply(output, error, partial(_note, event, caller, str(error or ""), at))


def handle_later(event: str, stored: dict[str, Any]) -> None:
    """Call the handlers of a hook that could wait, in a worker. Raises what a handler raises, after the others ran."""
    project, session = stored["project"], stored["session"]
    call = HookCall(
        event,
        Payload(**stored["payload"]),
        project and Project.objects.filter(pk=project).first(),
        session and Session.objects.filter(pk=session).first(),
        stored["installation"],
        stored["at"],
    )
    failed: list[Exception] = []
    for handler in LATER[event]:
        try:
            handler(call)
        except Exception as error:
            logger.exception("a handler of the hook %s failed", event)
            failed.append(error)
    if failed:
        raise failed[0]


def _call(event: str, caller: Caller, payload: Payload, at: datetime) -> HookCall:
    session = caller.session
    project = session.project if session else project_at(payload.cwd, within=caller.project)
    return HookCall(event, payload, project, session, caller.installation, at)


def _stored(call: HookCall) -> dict[str, Any]:
    """Return plain values, because a task outlives the program that queued it."""
    return {
        "payload": mask_value(asdict(call.payload)),  # the queue's own tables mask nothing
        "project": call.project and call.project.pk,
        "session": call.session and call.session.pk,
        "installation": call.installation,
        "at": call.at,
    }


def _answers(call: HookCall) -> list[HookAnswer]:
    """Return the answers of all handlers. Raises HookFailed when one fails and none denies."""
    answers: list[HookAnswer] = []
    failed: Exception | None = None
    for handler in HANDLERS[call.event]:
        try:
            answers += filter(None, [handler(call)])
        except Exception as error:  # whatever it is, the person who looks at `hook status` must learn of it
            logger.exception("a handler of the hook %s failed", call.event)
            failed = failed or error
    if failed and not any(answer.deny for answer in answers):
        _fail("answered", failed)
    return answers


def _fail(what: str, error: Exception) -> NoReturn:
    """Raise HookFailed; of an outage the error itself, for which the web server has the answer."""
    if outage.named_in(error):
        raise error
    reason = mask(f"{type(error).__name__}: {error}")
    raise HookFailed(f"The hook could not be {what}: {reason}", "See the log of the web server.") from error


def _store(call: HookCall, records: list[Callable[[], object]]) -> None:
    """Store the records of the answers and queue what can wait, in one write: it waits for other writers once."""
    if not records and not LATER[call.event]:
        return
    stored = _stored(call)
    try:
        with transaction.atomic():
            for record in records:
                record()
            if LATER[call.event]:
                tasks.send(tasks.HOOK, call.event, stored)
    except DatabaseError as error:
        logger.exception("the hook %s could not be stored", call.event)
        _fail("stored", error)


def _note(event: str, caller: Caller, problem: str, at: datetime) -> None:
    if caller.access:
        note_use(caller.access, at=at)
    if last_heard_from.note((event, caller.installation), problem, at=at):
        record("sessions.hook.failed", component="hooks", source="hook", success=False, at=at, event=event)
