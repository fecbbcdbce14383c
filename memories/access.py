"""Who asks from outside, and what they may see and do: tokens, their scopes, their project.

The API and MCP both ask here. Knows no request and no page; a secret is compared by its hash and never logged.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from memories.capture.text import fold
from memories.errors import AccessDenied, InvalidToken, MemoryNotFound, ProjectNotFound, TokenNotFound
from memories.models import ApiToken, Memory, Project, Scope
from memories.models.memory import MemoryQuerySet
from memories.recall.scope import isolated
from memories.recall.values import ANY_AGENT, ANY_PROJECT, Filters

log = logging.getLogger(__name__)

BEGINNING = "cops_"
"""What every secret begins with, so that a scanner for leaked keys can be told of it."""

SECRET_BYTES = 32
PREFIX = 12
"""Characters of a secret that are shown: the beginning and 42 of its 256 bits."""

LONGEST_SECRET = 200
USE_IS_WRITTEN_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks and what they may do; `actor` is the name in the history.

    `project` and `agent` bound what is seen, as in a recall's `Filters`: an id gives a project and what is global,
    None what is global alone, ANY_PROJECT everything. `token_id` is set where a token asks, `session_id` and `tier`
    where an agent's own session does.
    """

    actor: str
    scopes: frozenset[str]
    project: int | Literal["any"] | None = ANY_PROJECT
    agent: str | None = ANY_AGENT
    token_id: int | None = None
    last_used_at: datetime | None = None
    session_id: int | None = None
    tier: int = 0

    @property
    def confined(self) -> bool:
        """Whether it sees less than every project."""
        return self.project != ANY_PROJECT

    @property
    def project_id(self) -> int | None:
        """The project that what it adds belongs to; None = global."""
        return self.project if isinstance(self.project, int) else None

    def may(self, scope: str) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def require(self, scope: str) -> None:
        """Raises AccessDenied without the scope."""
        if not self.may(scope):
            held = ", ".join(sorted(self.scopes)) or "none"
            raise AccessDenied(
                f"This needs the scope {scope}; {self.actor} has {held}.",
                f"Make a token with it: manage.py token add NAME --scope {scope}",
            )


def visible_memories(access: Access) -> MemoryQuerySet:
    """What may be seen: with a project its memories and the global ones, else all; of agents, its own."""
    return isolated(Filters(project=access.project, agent=access.agent))


def changeable_memories(access: Access) -> MemoryQuerySet:
    """What may be changed: with a project its memories only. What is global is everybody's."""
    rows = visible_memories(access)
    return rows.filter(project=access.project_id) if access.confined else rows


def memory_of(access: Access, given: str | int) -> Memory:
    """The memory of a number or UUID. Raises MemoryNotFound, also for another project's: it is not there."""
    rows = visible_memories(access).select_related("project")
    found = rows.filter(**key).first() if (key := _key(str(given))) else None
    if found is None:
        raise MemoryNotFound(f"There is no memory {given}.", "List what there is: GET /api/memories")
    return found


def changeable_memory(access: Access, given: str | int) -> Memory:
    """The same, to change it. Raises AccessDenied for a global one that only may be read."""
    found = memory_of(access, given)
    if access.confined and found.project_id != access.project_id:
        raise AccessDenied(
            f"Memory {found.pk} is global; a token with a project only reads it.", "Ask with a token without a project."
        )
    return found


def project_of(access: Access, slug: str | None) -> Project | None:
    """The project a caller named: its own when it has one, whichever there is when it has none.

    Raises AccessDenied for another than its own, whether it is there or not; ProjectNotFound.
    """
    if access.confined:
        own = Project.objects.filter(pk=access.project_id or 0).first()
        if slug and (own is None or slug != own.slug):
            raise AccessDenied(
                f"{access.actor} asks within its own project only.", "Leave the project out, or name its own."
            )
        return own
    if not slug:
        return None
    found = Project.objects.filter(slug=slug).first()
    if found is None:
        raise ProjectNotFound(f"There is no project {slug!r}.", "Name one that is there, by its slug.")
    return found


def _key(given: str) -> dict[str, int | UUID]:
    if given.isdecimal():
        return {"pk": int(given)} if len(given) < 19 else {}
    try:
        return {"uuid": UUID(given)}
    except ValueError:
        return {}


# -- tokens ------------------------------------------------------------------------------------------------------


def digest(secret: str) -> str:
    """SHA-256 is enough: a secret of 256 random bits is guessed by nobody, whatever the hash costs."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def add_token(
    name: str, scopes: Iterable[str], *, by: str, project: Project | None = None, at: datetime | None = None
) -> tuple[ApiToken, str]:
    """Make a token; returns it with its secret, which is known only now. Raises InvalidToken."""
    wanted = fold(name)
    if not wanted or len(wanted) > 64:
        raise InvalidToken(f"name is {name!r}; allowed is 1 to 64 characters.")
    held = checked_scopes(scopes)
    secret = BEGINNING + secrets.token_urlsafe(SECRET_BYTES)
    token = ApiToken(
        name=wanted,
        prefix=secret[:PREFIX],
        secret_hash=digest(secret),
        scopes=held,
        project=project,
        created_by=by[:150],
        created_at=at or timezone.now(),
    )
    try:
        with transaction.atomic():
            token.save(force_insert=True)
    except IntegrityError as error:
        raise InvalidToken(
            f"There is a token {wanted!r} already.", "Take another name; names are not used again."
        ) from error
    return token, secret


def checked_scopes(scopes: Iterable[str]) -> list[str]:
    """In their order, each once. Raises InvalidToken for an unknown one, and for none."""
    given = set(scopes)
    unknown = sorted(given - set(Scope.values))
    if unknown or not given:
        said = f"scope {unknown[0]!r} is unknown" if unknown else "A token needs a scope"
        raise InvalidToken(f"{said}; allowed are {', '.join(Scope.values)}.")
    return [scope for scope in Scope.values if scope in given]


def revoke_token(name: str, *, by: str, at: datetime | None = None) -> ApiToken:
    """End a token, for good; a second time changes nothing. Raises TokenNotFound."""
    when = at or timezone.now()
    ApiToken.objects.filter(name=name, revoked_at=None).update(revoked_at=when, revoked_by=by[:150])
    found = ApiToken.objects.filter(name=name).select_related("project").first()
    if found is None:
        known = ", ".join(ApiToken.objects.values_list("name", flat=True)[:20]) or "none yet"
        raise TokenNotFound(f"There is no token {name!r}.", f"Known tokens: {known}.")
    return found


def access_of(secret: str) -> Access | None:
    """What the bearer of a secret may do; None for one that is unknown or revoked."""
    if not secret or len(secret) > LONGEST_SECRET:
        return None
    token = ApiToken.objects.filter(secret_hash=digest(secret), revoked_at=None).first()
    if token is None:
        return None
    return Access(
        actor=str(token),
        scopes=frozenset(token.scopes) & frozenset(Scope.values),
        project=ANY_PROJECT if token.project_id is None else token.project_id,
        token_id=token.pk,
        last_used_at=token.last_used_at,
    )


def note_use(access: Access, *, at: datetime | None = None) -> bool:
    """Write down that a token was used, at most once a minute; True when it was written.

    For after the answer is sent. A busy database is no reason to fail: the next use is written then.
    """
    when = at or timezone.now()
    if access.token_id is None or (access.last_used_at and when - access.last_used_at < USE_IS_WRITTEN_EVERY):
        return False
    due = Q(last_used_at=None) | Q(last_used_at__lte=when - USE_IS_WRITTEN_EVERY)
    try:
        with transaction.atomic():
            return bool(ApiToken.objects.filter(due, pk=access.token_id).update(last_used_at=when))
    except DatabaseError as error:
        log.warning("the use of %s could not be written down: %s", access.actor, error)
        return False
