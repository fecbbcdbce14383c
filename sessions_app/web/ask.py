"""`/ask`: what an agent will be told for a task, line by line. Other questions have their own pages."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from claudeops.lib.answers import page
from sessions_app.runner.parts import answer_for
from sessions_app.web.forms import AskForm
from sessions_app.web.memory_sessions import MAY_SEE

SHOWN = 8
"""Lines of a part that are not folded."""


@page(MAY_SEE)
def ask(request: HttpRequest) -> HttpResponse:
    """Show everything that an agent will be told for a task, and what it will not; nothing is stored or spent."""
    form = AskForm(request.GET or None)
    context: dict[str, Any] = {"form": form, "shown": f":{SHOWN}", "folded": f"{SHOWN}:"}
    if form.is_valid():
        agent, task = form.cleaned_data["agent"], form.cleaned_data["task"]
        context |= {"agent": agent, "task": task, "answer": answer_for(agent, None, task, at=timezone.now())}
    return render(request, "sessions/ask.html", context, status=422 if form.errors else 200)
