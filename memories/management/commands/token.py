"""`manage.py token`: tokens for the API and MCP. A secret is printed once and not stored."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import NextAction, Result, Verb, VerbCommand, current_user, table
from claudeops.lib.humanize import ago
from memories.access import add_token, revoke_token
from memories.errors import InvalidToken
from memories.lifecycle.projects import find_project
from memories.models import ApiToken, Scope

LONGEST = 3650
"""Days."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="who or what uses it; shown in the history as: token NAME")
    parser.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="SCOPE",
        help=f"permission: {', '.join(Scope.values)}; may be given several times (default: read)",
    )
    parser.add_argument("--project", help="a project's slug: that project plus global memories (default: all)")
    parser.add_argument(
        "--max-tier",
        type=int,
        choices=(1, 2, 3),
        default=1,
        help="highest tier of the sessions it requests (default 1)",
    )
    parser.add_argument(
        "--expires", type=int, metavar="DAYS", default=None, help="days after which it opens nothing (default: never)"
    )
    parser.add_argument("--by", default="", help="who creates it (default: you)")


def _revoke_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the token's name")
    parser.add_argument("--by", default="", help="who revokes it (default: you)")


class Command(VerbCommand):
    help = "Tokens for the API and MCP."
    noun = "token"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "add": Verb("Create a token; its secret is shown once.", self.add, _add_arguments),
            "list": Verb("All tokens, with their last use.", self.list),
            "revoke": Verb("Revoke a token for good.", self.revoke, _revoke_arguments),
        }

    def add(
        self, name: str, scope: list[str], project: str | None, max_tier: int, expires: int | None, by: str
    ) -> Result:
        if expires is not None and not 1 <= expires <= LONGEST:
            raise InvalidToken(f"--expires is {expires}; allowed are 1 to {LONGEST:,} days.")
        ends = None if expires is None else timezone.now() + timedelta(days=expires)
        within = None if project is None else find_project(project)
        token, secret = add_token(
            name,
            scope or [Scope.READ],
            by=by or current_user(),
            project=within,
            max_tier=max_tier,
            expires_at=ends,
        )
        text = f"Token {token.name} ({', '.join(token.scopes)}). Its secret, shown only now:\n{secret}"
        return Result(_data(token) | {"secret": secret}, text, [NextAction("manage.py token list", "see all tokens")])

    def list(self) -> Result:
        now, tokens = timezone.now(), list(ApiToken.objects.select_related("project"))
        rows = [
            (
                token.name,
                f"{token.prefix}…",
                ", ".join(token.scopes),
                token.project or "all",
                str(token.max_tier),
                ago(token.last_used_at, now) if token.last_used_at else "never",
                _state(token, now),
            )
            for token in tokens
        ]
        text = (
            table(["name", "secret", "scopes", "project", "tier", "last used", "state"], rows)
            if rows
            else "No token yet."
        )
        return Result([_data(token) for token in tokens], text)

    def revoke(self, name: str, by: str) -> Result:
        token = revoke_token(name, by=by or current_user())
        return Result(_data(token), f"Token {token.name} is revoked.")


def _state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at:
        return f"revoked {ago(token.revoked_at, now)} by {token.revoked_by}"
    if token.expires_at is None:
        return "valid"
    return f"{'expired' if token.expired(now) else 'valid until'} {token.expires_at:%Y-%m-%d %H:%M} UTC"


def _data(token: ApiToken) -> dict[str, Any]:
    names = (
        "name",
        "prefix",
        "scopes",
        "max_tier",
        "created_by",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
        "revoked_by",
    )
    data = {name: getattr(token, name) for name in names}
    return data | {"project": token.project.slug if token.project else None}
