"""What a caller of the API or MCP may see and change, by scopes, project and agent; API tokens. Knows no request."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from memories.capture.fields import agent_id
from memories.capture.statement import Provenance
from memories.capture.text import fold
from memories.errors import AccessDenied, InvalidToken, MemoryNotFound, ProjectNotFound, TokenNotFound
from memories.models import ApiToken, Exposure, Memory, Project, Scope, Source
from memories.models.memory import ANY_AGENT, ANY_PROJECT, MemoryQuerySet
from memories.taxonomy import PROJECT


@dataclass(frozen=True, slots=True)
class Access:
    """A caller and what it may do; `actor` is its name in the history.

    `project` and `agent` limit what is visible, as in a recall's `Filters`: an id means that project and the global
    memories, None the global ones only, ANY_PROJECT everything. `token_id` is set for a token, `session_id` and `tier`
    for an agent's session. `max_tier` is the highest tier of the sessions that it may request, `owner` the name of the
    account that made the token.
    """

    actor: str
    scopes: frozenset[str]
    project: int | Literal["any"] | None = ANY_PROJECT
    agent: str | None = ANY_AGENT
    token_id: int | None = None
    last_used_at: datetime | None = None
    session_id: int | None = None
    tier: int = 0
    max_tier: int = 1
    owner: str = ""

    @property
    def confined(self) -> bool:
        return self.project != ANY_PROJECT

    @property
    def project_id(self) -> int | None:
        """The project of the memories it adds; None = global."""
        return self.project if isinstance(self.project, int) else None

    def may(self, scope: str) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def provenance(self, channel: str, *, project_id: int | None = None, agent: str | None = None) -> Provenance:
        """Return the provenance of a text that this caller sends over `channel`. It is never a person's.

        What the caller had read is not known here, so it counts as outside text.
        """
        return Provenance(
            source=Source.RUN,
            actor=self.actor,
            session_id=self.session_id,
            tier=self.tier,
            project_id=project_id,
            agent=agent,
            channel=channel,
            exposure=Exposure.OUTSIDE,
            exposed_to=(f"client: {self.actor}"[:80],),
        )

    def check_change(self, row: Memory, new: Mapping[str, Any]) -> None:
        """Raises AccessDenied without the scope review for `new` columns that do a part of what an approval does.

        It raises the confidence, reactivates, lets the memory live longer, or exempts it from decay.
        """
        end = new.get("expires_at", row.expires_at)
        lasts = row.expires_at is not None and (end is None or end > row.expires_at)
        raised = (name for name in ("confidence", "active", "persistent") if new.get(name, 0) > getattr(row, name))
        if lasts or any(raised):
            self.require(Scope.REVIEW)

    def require(self, scope: str) -> None:
        """Raises AccessDenied without the scope."""
        if not self.may(scope):
            held = ", ".join(sorted(self.scopes)) or "none"
            raise AccessDenied(
                f"This needs the scope {scope}; {self.actor} has {held}.",
                f"Make a token with it: manage.py token add NAME --scope {scope}",
            )


def visible_memories(access: Access) -> MemoryQuerySet:
    """Filter to the visible memories: with a project its own and global ones; of agents' memories, its own.

    What the gate holds and what CLAUDEOPS_TRUST keeps back is visible with the scope `review` only.
    """
    rows = Memory.objects.all() if access.may(Scope.REVIEW) else Memory.objects.allowed().trusted()
    return rows.isolated_to(access.project, access.agent, file_of=agent_id(access.agent or ""))


def changeable_memories(access: Access) -> MemoryQuerySet:
    """Filter to the memories it may change: with a project only that project's, never global ones."""
    rows = visible_memories(access)
    return rows.filter(project=access.project_id) if access.confined else rows


def memory_of(access: Access, given: str | int) -> Memory:
    """Return the memory with a number or UUID. Raises MemoryNotFound, also for one that it may not see."""
    rows = visible_memories(access).select_related("project")
    memory = rows.filter(**key).first() if (key := _key(str(given))) else None
    if memory is None:
        raise MemoryNotFound(f"There is no memory {given}.", "List what there is: GET /api/memories")
    return memory


def changeable_memory(access: Access, given: str | int) -> Memory:
    """Return a memory to change. Raises MemoryNotFound, and AccessDenied for a global one that it may only read."""
    memory = memory_of(access, given)
    if access.confined and memory.project_id != access.project_id:
        raise AccessDenied(
            f"Memory {memory.pk} is global; a token with a project only reads it.",
            "Ask with a token without a project.",
        )
    return memory


def visible_projects(access: Access) -> QuerySet[Project]:
    """Filter to the projects that it may see: with a project its own, else all."""
    return Project.objects.filter(pk=access.project_id or 0) if access.confined else Project.objects.all()


def project_named(access: Access, given: str) -> Project:
    """Return the project with a number or slug, the number first. Raises ProjectNotFound, also for another's."""
    rows = visible_projects(access)
    project = rows.filter(pk=int(given)).first() if given.isdecimal() and len(given) < 19 else None
    if project is None and (project := rows.filter(slug=given).first() if "\0" not in given else None) is None:
        raise ProjectNotFound(f"There is no project {given!r}.", "List what there is: GET /api/projects")
    return project


def memories_of(access: Access, project: Project) -> MemoryQuerySet:
    """Filter to the memories of the project taxonomy in a visible `project`; global ones are none of them."""
    rows = visible_memories(replace(access, project=ANY_PROJECT))
    return rows.filter(project=project, taxonomy=PROJECT.slug)


def memory_of_project(access: Access, project: Project, given: str) -> Memory:
    """Return one of `memories_of`, by number or UUID. Raises MemoryNotFound, also for another project's."""
    rows = memories_of(access, project).select_related("approved_by")
    memory = rows.filter(**key).first() if (key := _key(given)) else None
    if memory is None:
        raise MemoryNotFound(
            f"There is no memory {given} in project {project.slug}.",
            f"List what there is: GET /api/projects/{project.slug}/memories",
        )
    return memory


def project_of(access: Access, slug: str | None) -> Project | None:
    """Return the project a caller names. Raises ProjectNotFound; AccessDenied beyond a confined caller's own."""
    if access.confined:
        own = Project.objects.filter(pk=access.project_id or 0).first()
        if slug and (own is None or slug != own.slug):
            raise AccessDenied(
                f"{access.actor} may use only its own project.", "Leave out the project, or name its own."
            )
        return own
    if not slug:
        return None
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise ProjectNotFound(f"There is no project {slug!r}.", "Use the slug of an existing project.")
    return project


def _key(reference: str) -> dict[str, int | UUID]:
    if reference.isdecimal():
        return {"pk": int(reference)} if len(reference) < 19 else {}
    try:
        return {"uuid": UUID(reference)}
    except ValueError:
        return {}


log = logging.getLogger(__name__)

BEGINNING = "cops_"
"""The prefix of every secret, so that scanners for leaked keys can find it."""

SECRET_BYTES = 32
PREFIX = 12
"""Characters of a secret that are stored and shown: the prefix and 42 of its 256 bits."""

LONGEST_SECRET = 200
USE_IS_WRITTEN_EVERY = timedelta(minutes=1)


def digest(secret: str) -> str:
    """SHA-256 is enough: 256 random bits cannot be guessed, however cheap the hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def add_token(
    name: str,
    scopes: Iterable[str],
    *,
    by: str,
    project: Project | None = None,
    max_tier: int = 1,
    expires_at: datetime | None = None,
    at: datetime | None = None,
) -> tuple[ApiToken, str]:
    """Create a token; returns it with its secret, which is not stored. Raises InvalidToken."""
    wanted = fold(name)
    if not wanted or len(wanted) > 64:
        raise InvalidToken(f"name is {name!r}; allowed is 1 to 64 characters.")
    held = checked_scopes(scopes)
    if max_tier not in (1, 2, 3):
        raise InvalidToken(f"max_tier is {max_tier!r}; allowed is 1, 2 or 3.")
    now = at or timezone.now()
    if expires_at is not None and expires_at <= now:
        raise InvalidToken(f"expires_at is {expires_at:%Y-%m-%d %H:%M} UTC, in the past.", "Give a later time.")
    secret = BEGINNING + secrets.token_urlsafe(SECRET_BYTES)
    token = ApiToken(
        name=wanted,
        prefix=secret[:PREFIX],
        secret_hash=digest(secret),
        scopes=held,
        project=project,
        max_tier=max_tier,
        created_by=by[:150],
        expires_at=expires_at,
        created_at=now,
    )
    try:
        with transaction.atomic():
            token.save(force_insert=True)
    except IntegrityError as error:
        raise InvalidToken(
            f"There is a token {wanted!r} already.", "Choose another name; names are not reused."
        ) from error
    return token, secret


def checked_scopes(scopes: Iterable[str]) -> list[str]:
    """Return the scopes in their order, each once. Raises InvalidToken for an unknown scope and for none."""
    names = set(scopes)
    unknown = sorted(names - set(Scope.values))
    if unknown or not names:
        problem = f"scope {unknown[0]!r} is unknown" if unknown else "A token needs a scope"
        raise InvalidToken(f"{problem}; allowed are {', '.join(Scope.values)}.")
    return [scope for scope in Scope.values if scope in names]


def revoke_token(name: str, *, by: str, at: datetime | None = None) -> ApiToken:
    """Revoke a token for good; idempotent. Raises TokenNotFound."""
    when = at or timezone.now()
    ApiToken.objects.filter(name=name, revoked_at=None).update(revoked_at=when, revoked_by=by[:150])
    token = ApiToken.objects.filter(name=name).select_related("project").first()
    if token is None:
        names = ", ".join(ApiToken.objects.values_list("name", flat=True)[:20]) or "none yet"
        raise TokenNotFound(f"There is no token {name!r}.", f"Known tokens: {names}.")
    return token


def access_of(secret: str, *, at: datetime | None = None) -> Access | None:
    """Return the access that a secret gives; None for an unknown, revoked or expired one."""
    if not secret or len(secret) > LONGEST_SECRET:
        return None
    token = ApiToken.objects.filter(secret_hash=digest(secret), revoked_at=None).first()
    if token is None or token.expired(at or timezone.now()):
        return None
    return Access(
        actor=str(token),
        scopes=frozenset(token.scopes) & frozenset(Scope.values),
        project=ANY_PROJECT if token.project_id is None else token.project_id,
        token_id=token.pk,
        last_used_at=token.last_used_at,
        max_tier=token.max_tier,
        owner=token.created_by,
    )


def note_use(access: Access, *, at: datetime | None = None) -> bool:
    """Record a token's use, at most once a minute; True when written. A busy database is logged, not raised."""
    when = at or timezone.now()
    if access.token_id is None or (access.last_used_at and when - access.last_used_at < USE_IS_WRITTEN_EVERY):
        return False
    due = Q(last_used_at=None) | Q(last_used_at__lte=when - USE_IS_WRITTEN_EVERY)
    try:
        with transaction.atomic():
            return bool(ApiToken.objects.filter(due, pk=access.token_id).update(last_used_at=when))
    except DatabaseError as error:
        log.warning("could not record the use of %s: %s", access.actor, error)
        return False
