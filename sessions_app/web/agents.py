"""`/agents/…/run` and others: run an agent now, pause its schedule, resume it; make one from a template."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse

from claudeops.lib.answers import action, answer, in_words
from sessions_app import agent_templates, queue
from sessions_app.checks import cli_messages
from sessions_app.errors import SessionsError
from sessions_app.models import Agent, ScheduleKind, Trigger
from sessions_app.web.session import HIGHEST
from sessions_app.web.sessions import said_of

MAY_RUN = ("sessions_app.view_session", "sessions_app.run_session")


def _back(request: HttpRequest, agent: Agent) -> str:
    """Return the page that the form stood on: the agent's, or the overview."""
    return reverse("agent", args=[agent.slug]) if request.POST.get("next") == "agent" else reverse("overview")


def _agent(pk: int) -> Agent:
    if pk > HIGHEST:
        raise Http404
    return get_object_or_404(Agent, pk=pk)


@action(MAY_RUN)
def run(request: HttpRequest, pk: int) -> HttpResponse:
    agent = _agent(pk)
    back = _back(request, agent)
    try:
        session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by=request.user.get_username())
    except SessionsError as error:
        return answer(request, f"{agent.slug} is not run: {in_words(error)}", back=back, level=messages.ERROR)
    level, text = said_of(session)
    return answer(request, text, back=back, level=level)


@action("sessions_app.add_agent")
def from_template(request: HttpRequest, slug: str) -> HttpResponse:
    """Make the agent of a template: paused while the CLI is not ready, so that its first sessions do not fail."""
    template, back = agent_templates.TEMPLATES.get(slug), reverse("overview")
    if template is None:
        raise Http404
    ready = not cli_messages()
    _, is_new = agent_templates.create(template, enabled=ready)
    if not is_new:
        text = f"There is an agent {slug} already; it was left as it is."
        return answer(request, text, back=back, level=messages.INFO)
    if ready:
        return answer(request, f"Created {slug}: its schedule runs.", back=back)
    text = f"Created {slug}, paused: the CLI is not ready on this host. Resume it when the CLI is connected."
    return answer(request, text, back=back, level=messages.WARNING)


@action("sessions_app.change_agent")
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _set_enabled(request, _agent(pk), enabled=False)


@action("sessions_app.change_agent")
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    return _set_enabled(request, _agent(pk), enabled=True)


def _set_enabled(request: HttpRequest, agent: Agent, *, enabled: bool) -> HttpResponse:
    back, word = _back(request, agent), "resumed" if enabled else "paused"
    if not queue.set_enabled(agent, enabled):
        text = f"{agent.slug} is {'not paused' if enabled else 'paused already'}."
        return answer(request, text, back=back, level=messages.INFO)
    undo = reverse("agent-pause" if enabled else "agent-resume", args=[agent.pk])
    text = f"{agent.slug} is {word}."
    if not enabled and agent.schedule_kind != ScheduleKind.NONE:
        text += " Its scheduled sessions wait until you resume it."
    return answer(request, text, back=back, undo=undo)
