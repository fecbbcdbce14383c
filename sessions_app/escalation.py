"""Read a session's request for a higher tier, and start the session that answers it.

The request is in the structured answer or in a handoff file. No session starts above the highest allowed tier; in a dry
run the request is recorded only.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from claudeops.lib import outside_json
from claudeops.lib.secrets import mask
from sessions_app import queue
from sessions_app.errors import InvalidSession, SessionsError
from sessions_app.models import Session, Trigger
from sessions_app.queue.requests import without_note

logger = logging.getLogger(__name__)

HANDOFF_LIMIT = 64 * 1024
TEXT_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Escalation:
    """A request. `problem` says why it could not be read."""

    reason: str = ""
    context: str = ""
    failed_checks: tuple[str, ...] = ()
    channel: str = ""
    problem: str = ""

    def as_record(self) -> dict[str, Any]:
        record = {
            "needed": not self.problem,
            "reason": self.reason,
            "context": self.context,
            "failed_checks": list(self.failed_checks),
            "channel": self.channel,
        }
        return {**record, "problem": self.problem} if self.problem else record


def escalate(session: Session, handoff_file: Path, *, at: datetime) -> dict[str, Any]:
    """Start the escalation that `session` asked for, if any, and return the record for its row (empty: none).

    Runs in the transaction that closes the session. A parent has one: closing it again returns the same child.
    """
    request = requested_escalation(session.structured, handoff_file)
    if request is None:
        return {}
    record = request.as_record()
    if request.problem:
        logger.warning("session %s: %s", session.pk, request.problem)
        return record
    if refused := _refusal(session):
        return {**record, "not_started": refused}
    agent = (session.agent.escalates_to or session.agent) if session.agent else None
    try:
        with transaction.atomic():
            child = queue.request_session(
                agent=agent,
                tier=session.tier + 1,
                trigger=Trigger.ESCALATION,
                by=f"session:{session.pk}",
                prompt_task=session.task,
                project=session.project,
                runner=session.runner if agent is None else None,
                parent=session,
                at=at,
                exposed_to=session.exposed_to,
                brief=without_note(session.brief),
            )
    except SessionsError as error:
        logger.warning("session %s: the escalation could not be started: %s", session.pk, error)
        return {**record, "not_started": str(error)}
    return {**record, "child": child.pk}


def may_hand_over(session: Session) -> str:
    """Say why a person cannot hand this session over to the next tier; empty when it can be."""
    if session.is_open:
        return "it has not ended yet"
    if session.trigger == Trigger.IMPORT:
        return "it is an imported log"
    if session.escalation.get("child"):
        return f"session {session.escalation['child']} has taken it over"
    return _refusal(session)


def hand_over(session: Session, *, by: str, at: datetime | None = None) -> Session:
    """Start a session of the next tier for one that ended, as if it had asked for it. Raises InvalidSession.

    Its reason is the parent's, so that the child's prompt says how far it came. A second call returns the same child.
    """
    existing = Session.objects.filter(parent=session, trigger=Trigger.ESCALATION).first()
    if existing is not None:
        return existing
    if refused := may_hand_over(session):
        raise InvalidSession(f"Session {session.pk} cannot be handed over: {refused}.")
    request = {name: value for name, value in session.escalation.items() if name not in ("problem", "not_started")}
    record = {
        "needed": True,
        "reason": session.status_reason or session.summary,
        "context": session.summary,
        "failed_checks": [],
        **{name: value for name, value in request.items() if value},
        "channel": "person",
        "by": by[:150],
    }
    with transaction.atomic():
        child = queue.request_session(
            agent=(session.agent.escalates_to or session.agent) if session.agent else None,
            tier=session.tier + 1,
            trigger=Trigger.ESCALATION,
            by=by,
            prompt_task=session.task,
            project=session.project,
            runner=session.runner if session.agent is None else None,
            parent=session,
            at=at,
            exposed_to=session.exposed_to,
            brief=without_note(session.brief),
        )
        Session.objects.filter(pk=session.pk).update(escalation={**record, "child": child.pk})
    return child


def describe(record: Mapping[str, Any]) -> str:
    """Describe in one sentence what became of the request; empty when there was none."""
    if record.get("problem"):
        return f"It asked for escalation, but {record['problem']}."
    if record.get("not_started"):
        return f"It asked for escalation, which was not started: {record['not_started']}."
    if record.get("child"):
        return f"Escalated to session {record['child']}: {record.get('reason') or 'no reason given'}"
    return ""


def requested_escalation(structured: Mapping[str, Any] | None, handoff_file: Path) -> Escalation | None:
    wanted = (structured or {}).get("escalation")
    if isinstance(wanted, Mapping) and wanted.get("needed") is True:
        return _read(wanted, "structured")
    return _read_handoff(handoff_file)


def _read_handoff(path: Path) -> Escalation | None:
    try:
        if not path.is_file() or path.is_symlink():
            return None
        with path.open("rb") as file:
            raw = file.read(HANDOFF_LIMIT + 1)
    except OSError as error:
        return Escalation(channel="handoff", problem=f"the handoff file could not be read: {error.strerror}")
    if len(raw) > HANDOFF_LIMIT:
        return Escalation(channel="handoff", problem=f"the handoff file is larger than {HANDOFF_LIMIT} bytes")
    try:
        data = outside_json.loads(raw)
    except ValueError as error:
        return Escalation(channel="handoff", problem=f"the handoff file is not valid JSON: {error}")
    if not isinstance(data, dict):
        return Escalation(channel="handoff", problem="the handoff file does not hold a JSON object")
    if data.get("needed") is False:
        return None
    return _read(data, "handoff")


def _read(wanted: Mapping[str, Any], channel: str) -> Escalation:
    checks = wanted.get("failed_checks")
    return Escalation(
        reason=_text(wanted.get("reason")),
        context=_text(wanted.get("context")),
        failed_checks=tuple(_text(check) for check in checks[:100]) if isinstance(checks, list) else (),
        channel=channel,
    )


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    text = mask(text)  # before the cut, which may halve a credential
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()[:TEXT_LIMIT]


def _refusal(session: Session) -> str:
    highest = settings.CLAUDEOPS_MAX_TIER
    if session.tier >= highest:
        return f"tier {session.tier} is the highest allowed (CLAUDEOPS_MAX_TIER={highest})"
    if session.dry_run:
        return f"dry run: tier {session.tier + 1} would have been started"
    return ""
