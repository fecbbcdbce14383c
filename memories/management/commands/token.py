"""`manage.py token`: tokens for the API and MCP. A secret is printed once and not stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import Columns, Result, VerbCommand, arg, by, columns, listing, verb
from claudeops.lib.humanize import ago
from memories.access import add_token, revoke_token
from memories.errors import InvalidToken
from memories.management.parameters import project
from memories.models import ApiToken, Project, Scope

LONGEST = 3650
"""Days."""


class Command(VerbCommand):
    help = "Tokens for the API and MCP."

    @verb
    def add(
        self,
        name: str = arg("who or what uses it; shown in the history as: token NAME"),
        *,
        scope: Sequence[str] = arg(
            f"permission: {', '.join(Scope.values)}; may be given several times (default: read)", metavar="SCOPE"
        ),
        project: Project | None = project("a project's slug: that project plus global memories (default: all)"),
        max_tier: int = arg("highest tier of the sessions it requests (default 1)", choices=(1, 2, 3), default=1),
        expires: int | None = arg("days after which it opens nothing (default: never)", metavar="DAYS"),
        by: str = by("who creates it (default: you)"),
    ) -> Result:
        """Create a token; its secret is shown once."""
        if expires is not None and not 1 <= expires <= LONGEST:
            raise InvalidToken(f"--expires is {expires}; allowed are 1 to {LONGEST:,} days.")
        ends = None if expires is None else timezone.now() + timedelta(days=expires)
        token, secret = add_token(
            name, scope or [Scope.READ], by=by, project=project, max_tier=max_tier, expires_at=ends
        )
        text = f"Token {token.name} ({', '.join(token.scopes)}). Its secret, shown only now:\n{secret}"
        return Result(_data(token) | {"secret": secret}, text, {"manage.py token list": "see all tokens"})

    @verb
    def list_(self) -> Result:
        """All tokens, with their last use."""
        now, tokens = timezone.now(), list(ApiToken.objects.select_related("project"))
        cells: Columns = {
            "name": "name",
            "secret": lambda token: f"{token.prefix}…",
            "scopes": lambda token: ", ".join(token.scopes),
            "project": lambda token: token.project or "all",
            "tier": "max_tier",
            "last used": lambda token: ago(token.last_used_at, now) if token.last_used_at else "never",
            "state": lambda token: _state(token, now),
        }
        text = listing(tokens, cells, "No token yet.")
        return Result([_data(token) for token in tokens], text)

    @verb
    def revoke(self, name: str = arg("the token's name"), *, by: str = by("who revokes it (default: you)")) -> Result:
        """Revoke a token for good."""
        token = revoke_token(name, by=by)
        return Result(_data(token), f"Token {token.name} is revoked.")


def _state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at:
        return f"revoked {ago(token.revoked_at, now)} by {token.revoked_by}"
    if token.expires_at is None:
        return "valid"
    return f"{'expired' if token.expired(now) else 'valid until'} {token.expires_at:%Y-%m-%d %H:%M} UTC"


def _data(token: ApiToken) -> dict[str, Any]:
    data = columns(token, "name", "prefix", "scopes", "max_tier", "created_by", "created_at", "last_used_at")
    data |= columns(token, "expires_at", "revoked_at", "revoked_by")
    return data | {"project": token.project.slug if token.project else None}
