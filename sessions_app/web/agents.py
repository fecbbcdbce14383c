"""`/agents/{id}/…`: run an agent now, pause its schedule, resume it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Agent, ScheduleKind, Trigger
from sessions_app.web.answers import done
from sessions_app.web.session import HIGHEST
from sessions_app.web.sessions import in_words, said_of

MAY_RUN = ("sessions_app.view_session", "sessions_app.run_session")


def _agent(pk: int) -> Agent:
    if pk > HIGHEST:
        raise Http404
    return get_object_or_404(Agent, pk=pk)


@require_POST
@permission_required(MAY_RUN, raise_exception=True)
def run(request: HttpRequest, pk: int) -> HttpResponse:
    agent, back = _agent(pk), reverse("overview")
    try:
        made = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by=request.user.get_username())
    except SessionsError as error:
        return done(request, f"{agent.slug} is not run: {in_words(error)}", back=back, level=messages.ERROR)
    level, text = said_of(made)
    return done(request, text, back=back, level=level)


@require_POST
@permission_required("sessions_app.change_agent", raise_exception=True)
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _set_enabled(request, _agent(pk), enabled=False)


@require_POST
@permission_required("sessions_app.change_agent", raise_exception=True)
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    return _set_enabled(request, _agent(pk), enabled=True)


def _set_enabled(request: HttpRequest, agent: Agent, *, enabled: bool) -> HttpResponse:
    back, word = reverse("overview"), "resumed" if enabled else "paused"
    if not queue.set_enabled(agent, enabled):
        text = f"{agent.slug} is {'not paused' if enabled else 'paused already'}."
        return done(request, text, back=back, level=messages.INFO)
    undo = reverse("agent-pause" if enabled else "agent-resume", args=[agent.pk])
    text = f"{agent.slug} is {word}."
    if not enabled and agent.schedule_kind != ScheduleKind.NONE:
        text += " Its scheduled sessions wait until you resume it."
    return done(request, text, back=back, undo=undo)
