"""The query string of a page without its place."""

from __future__ import annotations

from django.http import HttpRequest


def query_of(request: HttpRequest) -> str:
    given = request.GET.copy()
    for name in ("before", "after", "seen"):
        given.pop(name, None)
    for name in [name for name in given if not any(given.getlist(name))]:
        del given[name]
    return given.urlencode()
