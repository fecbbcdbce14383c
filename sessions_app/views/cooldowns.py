"""`/cooldowns`: what may be done to each service, what may not and until when, why; and clearing it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from memories.capture.text import normalise_service
from sessions_app import history, tokens
from sessions_app.cooldowns import limits as rule
from sessions_app.errors import SessionsError
from sessions_app.forms import IN_FORCE, LONGEST_SEEN, ClearForm, ServiceForm
from sessions_app.models import Remediation
from sessions_app.views.paging import query_of
from sessions_app.views.sessions import in_words


def _asked(request: HttpRequest) -> str | None:
    """The one service that is looked at; None for all."""
    form = ServiceForm(request.GET)
    return normalise_service(form.cleaned_data.get("service")) if form.is_valid() else None


def _skip(request: HttpRequest) -> int:
    """How many services stand on the pages before this one."""
    form = ServiceForm(request.GET)
    return (form.cleaned_data["skip"] or 0) if form.is_valid() else 0


def _addresses() -> dict[str, str]:
    """Where the links of a page lead: looked up once, not once a line. A session's is `sessions` and its number."""
    return {"here": reverse("cooldowns"), "sessions": reverse("session", args=[0]).removesuffix("0")}


def _context(request: HttpRequest) -> dict[str, Any]:
    written, asked, skip = tokens.cooldowns_written(), _asked(request), _skip(request)
    refused = None if asked or request.GET.get("state") != IN_FORCE else rule.refused()
    if refused is not None:
        names = list(dict.fromkeys(decision.service for decision in refused))[skip:]
    else:
        names = [asked] if asked else history.acted_on(skip=skip)
    entries = history.ENTRIES_OF_ONE if asked else history.ENTRIES
    found = history.services(names[: history.SERVICES], entries=entries)
    until = min((service.until for service in found if service.until), default=None)
    return {
        **_addresses(),
        "services": found,
        "asked": asked,
        "refused": refused,
        "skip": skip,
        "further": skip + history.SERVICES if len(names) > history.SERVICES else None,
        "limits": [(action, rule.limit_of(action)) for action in Remediation.values],
        "query": query_of(request),
        "seen": tokens.cooldowns_token(written, until),
    }


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@permission_required("sessions_app.view_cooldownaction", raise_exception=True)
def cooldowns(request: HttpRequest) -> HttpResponse:
    """`/cooldowns`; a POST clears one."""
    if request.method == "POST":
        return _clear(request)
    return render(request, "sessions/cooldowns.html", _context(request))


@require_safe
@never_cache
@permission_required("sessions_app.view_cooldownaction", raise_exception=True)
def rows(request: HttpRequest) -> HttpResponse:
    """What the page asks for every few seconds: 204 while it is as it was, else all of it."""
    if tokens.cooldowns_unchanged(request.GET.get("seen", "")[:LONGEST_SEEN], timezone.now()):
        return HttpResponse(status=204)
    return render(request, "sessions/_cooldowns.html", _context(request))


@permission_required("sessions_app.clear_cooldown", raise_exception=True)
def _clear(request: HttpRequest) -> HttpResponse:
    form = ClearForm(request.POST)
    if not form.is_valid():
        return _refused(request, form)
    asked = form.cleaned_data
    try:
        row = rule.clear(
            asked["service"], asked["action"] or None, by=request.user.get_username(), reason=asked["reason"]
        )
    except SessionsError as error:
        form.add_error(None, in_words(error))
        return _refused(request, form)
    said = f"{row.get_action_display() or 'Restart and redeployment'} of {row.service}: cleared.".capitalize()
    if request.htmx:  # type: ignore[attr-defined]
        return _card(request, row.service, {"said": said})
    messages.success(request, said)
    query = query_of(request)
    return HttpResponseRedirect(reverse("cooldowns") + (f"?{query}" if query else ""))


def _card(request: HttpRequest, name: str, more: dict[str, Any], status: int = 200) -> HttpResponse:
    """One service's part of the page, as htmx puts it in place."""
    entries = history.ENTRIES_OF_ONE if _asked(request) else history.ENTRIES
    (service,) = history.services([name], entries=entries)
    context = {"service": service, "query": query_of(request), "asked": _asked(request), **_addresses(), **more}
    return render(request, "sessions/_cooldown_answer.html", context, status=status)


def _refused(request: HttpRequest, form: ClearForm) -> HttpResponse:
    """What is wrong, said in the form of the service that it is about; what was typed is still there."""
    name = normalise_service(form.cleaned_data.get("service"))
    if request.htmx and name:  # type: ignore[attr-defined]
        return _card(request, name, {"form": form, "wrong": name}, status=422)
    context = _context(request) | {"form": form, "wrong": name}
    context["stray"] = name not in {service.name for service in context["services"]}
    return render(request, "sessions/cooldowns.html", context, status=422)
