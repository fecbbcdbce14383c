"""Who calls the door: an installation with an API token, or one of our own running sessions with a signed token."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.core import signing
from django.core.exceptions import ValidationError

from memories.access import BEGINNING, Access, access_of
from memories.models import Scope
from sessions_app.errors import TooManyHooks, UnknownCaller
from sessions_app.models import Session
from sessions_app.runner.agent_hooks import SALT

OUR_SESSIONS = "sessions"
MOST_A_SECOND = 50
"""Calls of one installation, or of one of our sessions, in each web process."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`access` is a token's, `session` is one of ours. `project` limits what is seen, as in `Access`."""

    installation: str
    project: int | Literal["any"] | None
    access: Access | None = None
    session: Session | None = None


class Rate:
    """Admit at most `most` calls of each key in a second. Calls from several threads may be off by a few."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._second, self._calls = 0, dict[Hashable, int]()

    def admits(self, key: Hashable, second: int) -> bool:
        if second != self._second:
            self._second, self._calls = second, {}
        self._calls[key] = self._calls.get(key, 0) + 1
        return self._calls[key] <= self.most


RATE = Rate(MOST_A_SECOND)


def caller_of(secret: str, *, at: datetime | None = None) -> Caller:
    """Return who has this secret, in one query.

    Raises UnknownCaller, AccessDenied for a token without the scope `hook`, and TooManyHooks.
    """
    caller = _token(secret, at) if secret.startswith(BEGINNING) else _session(secret)
    if caller is None:
        raise UnknownCaller(
            "The token is unknown, revoked or expired, or that of a session that has ended.",
            "Create one and install the hooks with it: manage.py hook install",
        )
    key = (caller.access and caller.access.token_id, caller.session and caller.session.pk)
    if not RATE.admits(key, int(time.monotonic())):
        raise TooManyHooks(f"{caller.installation} calls more than {MOST_A_SECOND} hooks a second.")
    return caller


def _token(secret: str, at: datetime | None) -> Caller | None:
    access = access_of(secret, at=at)
    if access is None:
        return None
    access.require(Scope.HOOK)
    return Caller(access.actor.removeprefix("token "), access.project, access=access)


def _session(secret: str) -> Caller | None:
    try:
        uuid = signing.loads(secret, salt=SALT)
        rows = Session.objects.running().select_related("project", "agent")
        session = rows.defer("prompt", "injected_text", "response", "structured").filter(uuid=uuid).first()
    except (signing.BadSignature, ValidationError):
        return None
    return None if session is None else Caller(OUR_SESSIONS, session.project_id, session=session)
