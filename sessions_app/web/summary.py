"""`/library/summary`: what happened on a day or in a week."""

from __future__ import annotations

from datetime import date, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from claudeops.lib.answers import page
from memories.models import Project
from sessions_app.queries.summary import DAY, WEEK, read
from sessions_app.summaries import cost_of

SEES = ("memories.view_memory", "memories.view_decision", "memories.view_journalentry", "sessions_app.view_session")


@page((*SEES, "sessions_app.view_event"))
def summary(request: HttpRequest) -> HttpResponse:
    """Show the day or the week of `date`; one that cannot be read is today."""
    kind = WEEK if request.GET.get("kind") == WEEK else DAY
    today = timezone.now().date()
    try:
        day = date.fromisoformat(request.GET.get("date", ""))
    except ValueError:
        day = today
    day = day if 2000 <= day.year < 9999 else today
    slug = request.GET.get("project", "")
    project = get_object_or_404(Project, slug=slug) if slug else None
    step = timedelta(days=7 if kind == WEEK else 1)
    found = read(kind, day, project)
    context = {
        "summary": found,
        "cost": cost_of(found),
        "day": day,
        "before": day - step,
        "after": day + step if day + step <= today else None,
        "kinds": (DAY, WEEK),
        "projects": Project.objects.order_by("slug").values_list("slug", flat=True)[:100],
    }
    return render(request, "library/summary.html", context)
