"""`/cooldowns`: the limits and the history of each service, and clearing a cooldown."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from claudeops.lib.answers import in_words, page
from claudeops.lib.list_view.view import query_of
from memories.capture.text import normalise_service
from memories.models import highest
from sessions_app.cooldowns import history
from sessions_app.cooldowns import limits as rule
from sessions_app.errors import SessionsError
from sessions_app.models import CooldownAction, CooldownClearance, Remediation, ServiceCheck
from sessions_app.web.forms import IN_FORCE, ClearForm, ServiceForm


def _asked(request: HttpRequest) -> str | None:
    form = ServiceForm(request.GET)
    return normalise_service(form.cleaned_data.get("service")) if form.is_valid() else None


def _skip(request: HttpRequest) -> int:
    form = ServiceForm(request.GET)
    return (form.cleaned_data["skip"] or 0) if form.is_valid() else 0


def _addresses() -> dict[str, str]:
    """Resolve the addresses of the links once a page. A session's is `sessions` and its id."""
    return {"here": reverse("cooldowns"), "sessions": reverse("session", args=[0]).removesuffix("0")}


def _state() -> str:
    """Return the highest ids of what cooldowns are derived from; otherwise only time changes them."""
    return ".".join(str(pk) for pk in highest(CooldownAction, CooldownClearance, ServiceCheck))


def _token(state: str, until: datetime | None) -> str:
    """Build the page's token; `until` is when the next action leaves its window."""
    return f"{state}-{int(until.timestamp()) + 1 if until else ''}"


def _is_unchanged(token: str, at: datetime) -> bool:
    state, _, until = token.partition("-")
    if until and not (until.isdecimal() and len(until) < 12 and at.timestamp() < int(until)):
        return False
    return state == _state()


def _context(request: HttpRequest) -> dict[str, Any]:
    state, one_service, skip = _state(), _asked(request), _skip(request)
    refused = None if one_service or request.GET.get("state") != IN_FORCE else rule.refused()
    if refused is not None:
        names = list(dict.fromkeys(decision.service for decision in refused))[skip:]
    else:
        names = [one_service] if one_service else history.acted_on(skip=skip)
    entries = history.ENTRIES_OF_ONE if one_service else history.ENTRIES
    services = history.services(names[: history.SERVICES], entries=entries)
    until = min((service.until for service in services if service.until), default=None)
    return {
        **_addresses(),
        "services": services,
        "asked": one_service,
        "refused": refused,
        "skip": skip,
        "further": skip + history.SERVICES if len(names) > history.SERVICES else None,
        "limits": [(action, rule.limit_of(action)) for action in Remediation.values],
        "query": query_of(request.GET),
        "seen": _token(state, until),
    }


@page("sessions_app.view_cooldownaction", "POST")
def cooldowns(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _clear(request)
    return render(request, "sessions/cooldowns.html", _context(request))


@page("sessions_app.view_cooldownaction")
def rows(request: HttpRequest) -> HttpResponse:
    if _is_unchanged(request.GET.get("seen", ""), timezone.now()):
        return HttpResponse(status=204)
    return render(request, "sessions/_cooldowns.html", _context(request))


@permission_required("sessions_app.clear_cooldown", raise_exception=True)
def _clear(request: HttpRequest) -> HttpResponse:
    form = ClearForm(request.POST)
    if not form.is_valid():
        return _refused(request, form)
    cleaned = form.cleaned_data
    try:
        row = rule.clear(
            cleaned["service"], cleaned["action"] or None, by=request.user.get_username(), reason=cleaned["reason"]
        )
    except SessionsError as error:
        form.add_error(None, in_words(error))
        return _refused(request, form)
    message = f"{row.get_action_display() or 'Restart and redeployment'} of {row.service}: cleared.".capitalize()
    if request.htmx:  # type: ignore[attr-defined]
        return _card(request, row.service, {"said": message})
    messages.success(request, message)
    query = query_of(request.GET)
    return HttpResponseRedirect(reverse("cooldowns") + (f"?{query}" if query else ""))


def _card(request: HttpRequest, name: str, more: dict[str, Any], status: int = 200) -> HttpResponse:
    entries = history.ENTRIES_OF_ONE if _asked(request) else history.ENTRIES
    (service,) = history.services([name], entries=entries)
    context = {"service": service, "query": query_of(request.GET), "asked": _asked(request), **_addresses(), **more}
    return render(request, "sessions/_cooldown_answer.html", context, status=status)


def _refused(request: HttpRequest, form: ClearForm) -> HttpResponse:
    """Show the errors in the form of their service, with the input kept."""
    name = normalise_service(form.cleaned_data.get("service"))
    if request.htmx and name:  # type: ignore[attr-defined]
        return _card(request, name, {"form": form, "wrong": name}, status=422)
    context = _context(request) | {"form": form, "wrong": name}
    context["stray"] = name not in {service.name for service in context["services"]}
    return render(request, "sessions/cooldowns.html", context, status=422)
