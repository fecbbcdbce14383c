"""The hooks of our own sessions: the token with which a session's hooks call the door."""

from __future__ import annotations

from django.core import signing

from sessions_app.models import Session

SALT = "claudeops.hooks"


def hook_token(session: Session) -> str:
    """Return the token of a session's hooks; the door takes it while the session runs."""
    return signing.dumps(str(session.uuid), salt=SALT)
