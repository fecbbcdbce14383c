"""Whether a session asks for a higher tier, and what becomes of it.

Two channels: the structured answer's `escalation`, or a handoff file. Never above the highest allowed tier;
in a dry run it is recorded and not started.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from sessions_app.models import Session

logger = logging.getLogger(__name__)

HANDOFF_LIMIT = 64 * 1024
TEXT_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Escalation:
    """What a session asked for. `problem` says why it could not be read."""

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


def asked_for(structured: Mapping[str, Any] | None, handoff_file: Path) -> Escalation | None:
    """The escalation a session asked for, or None. A handoff that cannot be read is returned with its problem."""
    wanted = (structured or {}).get("escalation")
    if isinstance(wanted, Mapping) and wanted.get("needed") is True:
        return _read(wanted, "structured")
    return _handoff(handoff_file)


def _handoff(path: Path) -> Escalation | None:
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
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return Escalation(channel="handoff", problem=f"the handoff file is no JSON: {error}")
    if not isinstance(data, dict):
        return Escalation(channel="handoff", problem="the handoff file holds no JSON object")
    if data.get("needed") is False:
        return None
    return _read(data, "handoff")


def _read(wanted: Mapping[str, Any], channel: str) -> Escalation:
    checks = wanted.get("failed_checks")
    return Escalation(
        reason=_cut(wanted.get("reason")),
        context=_cut(wanted.get("context")),
        failed_checks=tuple(_cut(check) for check in checks[:100]) if isinstance(checks, list) else (),
        channel=channel,
    )


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()[:TEXT_LIMIT]


def refusal(session: Session) -> str:
    """Why an escalation of this session is not started; an empty string when it is."""
    highest = settings.CLAUDEOPS_MAX_TIER
    if session.tier >= highest:
        return f"tier {session.tier} is the highest allowed (CLAUDEOPS_MAX_TIER={highest})"
    if session.dry_run:
        return f"dry run: tier {session.tier + 1} would have been started"
    return ""
