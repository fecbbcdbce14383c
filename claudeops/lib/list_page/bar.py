"""The query bar of a list: its text as filters, a chip for each filter that is set, built-in views with counts.

A page declares a `QueryBar` and renders `list/_views.html` and `list/_bar.html` with what `context` returns. Filters
are parameters of the address, which holds only what is set; typed text (`q`) redirects to such an address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django_filters import FilterSet

from claudeops.lib.capped import Count, counts_of
from claudeops.lib.list_page.query import Query, format_query, parameters, parse, unknown_tokens

NOT_CHOSEN = {"", "unknown"}
"""What a form sends for a field without a choice."""

NO_FILTERS = ("sort", "size")
"""Parameters that are kept with the filters and do not narrow the list."""

PLACE = ("after", "before", "seen", "hold", "format", "q")
"""Parameters that are no filters: the place in the list, the state of its poll, the text of the bar."""


class View(NamedTuple):
    """A built-in view: the query of its address, what its title says, and whether an index can count it."""

    label: str
    query: str
    title: str = ""
    counted: bool = True


@dataclass(frozen=True, slots=True)
class QueryBar:
    """What a list declares.

    `text` is the filter of free words, `shown` the first fields behind "Filters" (the others follow), `views` the
    built-in views, `example` what the empty bar shows.
    """

    filterset: type[FilterSet]
    rows: Callable[[], QuerySet[Any]]
    views: tuple[View, ...]
    example: str
    text: str = "text"
    shown: tuple[str, ...] = ()

    def query_of(self, request: HttpRequest, *without: str) -> str:
        """Return the query string's filters and order, without the place in the list."""
        return _encoded(request.GET.copy(), *without)

    def filters_of(self, request: HttpRequest) -> str:
        """Return the query string's filters alone; empty for a list of everything."""
        return _encoded(request.GET.copy(), *NO_FILTERS)

    def errors(self, request: HttpRequest) -> list[str]:
        """Return what the bar's text names that is no filter; a text without errors is never in an address."""
        return unknown_tokens(parse(request.GET.get("q", "")), tuple(self.filterset.base_filters))

    def redirect(self, request: HttpRequest) -> HttpResponse | None:
        """Return the redirect from the bar's text to the address that has it as filters; None without such a text."""
        if "q" not in request.GET or self.errors(request):
            return None
        given = request.GET.copy()
        given.pop(self.text, None)
        for name, value in parameters(parse(given.get("q", "")), self.text).items():
            given[name] = value
        query = _encoded(given)
        return HttpResponseRedirect(request.path + (f"?{query}" if query else ""))

    def context(
        self, request: HttpRequest, filters: FilterSet, suggested: Iterable[str], views: Iterable[View] = ()
    ) -> dict[str, Any]:
        """Return the variables of `list/_views.html` and `list/_bar.html`.

        `views` follow those of the declaration: they depend on who asks or on the time.
        """
        fields = {name: filters.form[name] for name in filters.form.fields if name != self.text}
        more = [field for name, field in fields.items() if name not in self.shown]
        words = tuple(request.GET.get(self.text, "").split())
        return {
            "q": request.GET.get("q") or format_query(Query(words=words)),
            "query_errors": self.errors(request),
            "chips": self._chips(request, filters),
            "suggested": suggested,
            "example": self.example,
            "views": self._views(request, (*self.views, *views)),
            "filter_fields": [fields[name] for name in self.shown] + more,
        }

    def _chips(self, request: HttpRequest, filters: FilterSet) -> list[dict[str, Any]]:
        chips = []
        for name in filters.form.fields:
            value = request.GET.get(name, "")
            if name != self.text and value not in NOT_CHOSEN:
                errors = filters.form.errors.get(name, [])
                chips.append({"name": name, "value": value, "without": self.query_of(request, name), "errors": errors})
        return chips

    def _views(self, request: HttpRequest, views: Iterable[View]) -> list[dict[str, Any]]:
        here = sorted(parse_qsl(self.filters_of(request)))
        found, rows = [], []
        for view in views:
            given = dict(parse_qsl(view.query))
            given.pop("sort", None)
            if view.counted:
                # Without filters there is nothing to read; building them takes longer than a count.
                rows.append(self.filterset(given, queryset=self.rows()).qs if given else self.rows())
            found.append({**view._asdict(), "count": "", "current": here == sorted(given.items())})
        counts = iter(counts_of(rows))
        for one in found:
            if one["counted"]:
                one["count"] = Count(next(counts)).shown
        return found


def _encoded(given: QueryDict, *without: str) -> str:
    for name in (*PLACE, *without):
        given.pop(name, None)
    for name in [name for name in given if not set(given.getlist(name)) - NOT_CHOSEN]:
        del given[name]
    return given.urlencode()
