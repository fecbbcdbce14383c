"""`/search`: everything that has these words, each kind apart with its count."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from claudeops.lib.answers import page
from claudeops.lib.domain_error import DomainError
from memories.recall.service import by_person
from sessions_app.queries import search as one_search

SEES = {
    "memories": "memories.view_memory",
    "sessions": "sessions_app.view_session",
    "events": "sessions_app.view_event",
    "journal": "memories.view_journalentry",
    "decisions": "memories.view_decision",
    "skills": "memories.view_skill",
}
EACH = 8


@page(())
def search(request: HttpRequest) -> HttpResponse:
    """Show what `q` finds among the kinds that the account may see."""
    text = request.GET.get("q", "")[: one_search.LONGEST]
    kinds = [name for name in one_search.KINDS if request.user.has_perm(SEES[name])]
    problem = ""
    try:
        access = by_person(request.user.get_username())
        found = one_search.search(access, text, kinds=kinds, limit=EACH) if kinds else []
    except DomainError as error:
        found, problem = [], str(error)
    context = {
        "text": text,
        "kinds": [one for one in found if one.count],
        "without": [one.name for one in found if not one.count],
        "problem": problem,
        "words": text.split(),
        "most": one_search.MOST_COUNTED,
    }
    return render(request, "library/search.html", context, status=422 if problem else 200)
