"""Make, revoke and look up API tokens, and record their use. Secrets are compared by hash and never logged."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from memories.access.permissions import Access
from memories.capture.text import fold
from memories.errors import InvalidToken, TokenNotFound
from memories.models import ApiToken, Project, Scope
from memories.models.memory import ANY_PROJECT

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
    given = set(scopes)
    unknown = sorted(given - set(Scope.values))
    if unknown or not given:
        said = f"scope {unknown[0]!r} is unknown" if unknown else "A token needs a scope"
        raise InvalidToken(f"{said}; allowed are {', '.join(Scope.values)}.")
    return [scope for scope in Scope.values if scope in given]


def revoke_token(name: str, *, by: str, at: datetime | None = None) -> ApiToken:
    """Revoke a token for good; idempotent. Raises TokenNotFound."""
    when = at or timezone.now()
    ApiToken.objects.filter(name=name, revoked_at=None).update(revoked_at=when, revoked_by=by[:150])
    found = ApiToken.objects.filter(name=name).select_related("project").first()
    if found is None:
        known = ", ".join(ApiToken.objects.values_list("name", flat=True)[:20]) or "none yet"
        raise TokenNotFound(f"There is no token {name!r}.", f"Known tokens: {known}.")
    return found


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
