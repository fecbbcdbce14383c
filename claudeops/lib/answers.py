"""What views share: who may ask and how; the answer, a fragment with a message for htmx, else a redirect with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from claudeops.lib.domain_error import DomainError

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def page(permission: str | Sequence[str], *methods: str) -> Callable[[View], View]:
    """Make a page of a view: for who has the permissions, in no cache, by GET or HEAD or the further `methods`."""

    def decorate(view: View) -> View:
        allowed = permission_required(permission, raise_exception=True)(view)
        return require_http_methods(["GET", "HEAD", *methods])(never_cache(allowed))

    return decorate


def action(permission: str | Sequence[str]) -> Callable[[View], View]:
    """Make an action of a view: for who has the permissions, by POST alone."""
    return lambda view: require_POST(permission_required(permission, raise_exception=True)(view))


def in_words(error: DomainError) -> str:
    return f"{error} {error.fix}".strip()


def actor(request: HttpRequest) -> str:
    return str(request.user.get_username())


def by_htmx(request: HttpRequest) -> bool:
    return bool(getattr(request, "htmx", False))


def toast(request: HttpRequest, text: str, *, level: str = "success", undo: str = "", kind: str = "") -> str:
    """Render an out-of-band message. In a <template>, because a parser drops a form after a <tr>.

    Messages of one `kind`, such as "approved", are put together by the browser: "4 approved."
    """
    context = {"text": text, "level": level, "undo": undo, "kind": kind, "oob": True}
    return f"<template>{render_to_string('_toast.html', context, request)}</template>"


def fragment(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    said: str = "",
    undo: str = "",
    kind: str = "",
    status: int = 200,
) -> HttpResponse:
    html = render_to_string(template, context, request)
    return HttpResponse(html + (toast(request, said, undo=undo, kind=kind) if said else ""), status=status)


def moved(request: HttpRequest, to: str, text: str, *, level: int = messages.SUCCESS, undo: str = "") -> HttpResponse:
    messages.add_message(request, level, text, extra_tags=f"undo:{undo}" if undo else "")
    return HttpResponseRedirect(to)


def answer(
    request: HttpRequest,
    text: str,
    *,
    back: str,
    level: int = messages.SUCCESS,
    undo: str = "",
    kind: str = "",
    status: int = 200,
) -> HttpResponse:
    """Answer an action: for htmx with a message alone, after which the page asks for what changed."""
    if not by_htmx(request):
        return moved(request, back, text, level=level, undo=undo)
    # "wake" makes the pollers of the page ask at once.
    html = toast(request, text, level=messages.DEFAULT_TAGS[level], undo=undo, kind=kind)
    return HttpResponse(html, status=status, headers={"HX-Trigger": "wake", "HX-Reswap": "none"})
