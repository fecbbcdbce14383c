"""Limit sign-ins: failures of a user and an address are counted, and only one password is hashed at a time.

django-axes stores the failures and refuses before a password is hashed. Imported only where somebody signs in.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

MOST_OF_ADDRESS = 50
"""Failures of one address with any user names: many for an office behind one address, few for guessing."""

AT_ONCE = 2
"""Sign-ins that hold one of the web server's eight threads: one hashes, one waits. Others are refused at once."""

LOCKED = "Too many failed sign-ins. Wait {minutes} minutes, or let the operator lift the limit."
BUSY = "Too many people are signing in at once. Try again in a few seconds."

log = logging.getLogger(__name__)
_places = threading.BoundedSemaphore(AT_ONCE)
_hashing = threading.Lock()


class Failures(AxesDatabaseHandler):
    """Count by user and address together, with a higher limit for an address alone.

    A user name alone is never locked: anybody could keep its owner out.
    """

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        failures = int(super().get_failures(request, credentials))
        if failures >= settings.AXES_FAILURE_LIMIT:
            return failures
        since = request.axes_attempt_time - settings.AXES_COOLOFF_TIME  # type: ignore[attr-defined]
        address = request.axes_ip_address  # type: ignore[attr-defined]
        attempts = AccessAttempt.objects.filter(ip_address=address, attempt_time__gte=since)
        of_address = attempts.aggregate(Sum("failures_since_start"))["failures_since_start__sum"] or 0
        return settings.AXES_FAILURE_LIMIT if of_address >= MOST_OF_ADDRESS else failures

    def clean_expired_user_attempts(
        self, request: HttpRequest | None = None, credentials: dict[str, Any] | None = None
    ) -> int:
        if getattr(request, "axes_locked_out", False):
            return 0  # a refused try writes nothing
        return int(super().clean_expired_user_attempts(request, credentials))


def client_address(request: HttpRequest) -> str | None:
    """Return the address of the client; of IPv6 the /64 network, which one customer has. None when it has none.

    Each of CLAUDEOPS_TRUSTED_PROXIES proxies appends the address that it sees to X-Forwarded-For; what stands before
    their entries the client can write itself, so it is not read.
    """
    chain = [request.META.get("REMOTE_ADDR", "")]
    if proxies := settings.CLAUDEOPS_TRUSTED_PROXIES:
        chain = [*request.META.get("HTTP_X_FORWARDED_FOR", "").split(","), *chain]
        chain = chain[-1 - proxies :]
    try:
        address = ipaddress.ip_address(chain[0].strip())
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), 64), strict=False).network_address)
    return str(address)


def client_text(username: str | None, address: str | None, *rest: Any) -> str:
    """Describe who tried, for the log: quoted, so that a user name cannot forge a line."""
    return f"user {(username or '')[:150]!r} from {address or 'an unknown address'}"


@contextmanager
def turn() -> Iterator[bool]:
    """Yield whether this sign-in may hash a password now: one at a time, so that the other pages stay fast."""
    if not _places.acquire(blocking=False):
        yield False
        return
    try:
        with _hashing:
            yield True
    finally:
        _places.release()


def refuse(request: HttpRequest, text: str) -> HttpResponse:
    """Show the sign-in page with the reason, with status 429."""
    context = {"form": AuthenticationForm(request), "refusal": text}
    response = render(request, "registration/login.html", context, status=429)
    response["Retry-After"] = "5"
    return response


def locked_out(request: HttpRequest, response: HttpResponse, credentials: dict[str, Any] | None) -> HttpResponse:
    """Answer a try that django-axes has refused (AXES_LOCKOUT_CALLABLE)."""
    return refuse(request, LOCKED.format(minutes=int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)))
