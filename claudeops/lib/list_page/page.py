"""A list page as a declaration: rows, filters, views, columns, orders, actions. Views read it, templates draw it.

`PAGES` finds a page by the name of its address, for what all lists share: columns, saved views.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django_filters import FilterSet

from claudeops.lib.list_page.bar import NO_FILTERS, QueryBar, View
from claudeops.lib.list_page.columns import SIZE, SIZES, Chosen, Column, shown_of, size_of
from claudeops.lib.list_page.export import CHUNK, export
from claudeops.lib.list_page.export import MOST as MOST_EXPORTED
from claudeops.lib.list_page.keyset import Place, Sort, read_place
from claudeops.lib.preferences.chosen import MOST, list_choice_of, views_of


@dataclass(frozen=True, slots=True)
class Action:
    """An action on the selected rows: a button of the bulk bar. `key` does the same; `asks`: a page asks first.

    `url` is the name of another address that takes the selection, where the list's own bulk actions do not have it.
    """

    name: str
    label: str
    permission: str
    key: str = ""
    asks: bool = False
    bad: bool = False
    folded: bool = False
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(QueryBar):
    """What a list declares, besides its query bar. `name` is the name of its address, `permission` who may see it.

    `sorts` are its orders by key; `first` is the key of the usual one. `own_views` are built-in views whose filter
    depends on the time or the person, as a function of the account.
    """

    name: str
    permission: str
    columns: tuple[Column, ...]
    sorts: Mapping[str, Sort]
    first: str
    actions: tuple[Action, ...] = ()
    own_views: Callable[[Any], Iterable[View]] = lambda user: ()

    def chosen(self, request: HttpRequest) -> Chosen:
        """Return the columns and the size that the address or the person has chosen. One query."""
        kept = list_choice_of(request.user, self.name)
        shown = shown_of(self.columns, kept.names if kept and kept.columns else None)
        return Chosen(shown, size_of(request.GET.get("size", "")) or (kept.size if kept else SIZE))

    def place(self, request: HttpRequest) -> tuple[Sort, Place | None, Place | None]:
        """Return the order, and the place that the page is after or before; a place that cannot be read is none."""
        sort = self.sorts.get(request.GET.get("sort", ""), self.sorts[self.first])
        return sort, _place(sort, request, "after"), _place(sort, request, "before")

    def heads(self, request: HttpRequest, sort: Sort, chosen: Chosen) -> list[dict[str, Any]]:
        """Return the heads of the shown columns; one that can be sorted has the query of its link and its order."""
        rest = self.query_of(request, "sort")
        heads = []
        for column in self.columns:
            if column.name not in chosen.shown:
                continue
            head: dict[str, Any] = {"column": column}
            if column.sort:
                here = sort.name == column.sort
                descending = not sort.descending if here else not column.rising
                key = ("-" if descending else "") + column.sort
                head["query"] = f"{rest}&sort={key}" if rest else f"sort={key}"
                head["order"] = ("descending" if sort.descending else "ascending") if here else "none"
            heads.append(head)
        return heads

    def export(self, kind: str, shown: Collection[str], rows: QuerySet[Any]) -> StreamingHttpResponse:
        """Return the file of `rows` with the columns of these names; `kind` is csv or json."""
        columns = [one for one in self.columns if one.name in shown]
        cut = rows[MOST_EXPORTED : MOST_EXPORTED + 1].exists()
        return export(self.name, kind, columns, rows[:MOST_EXPORTED].iterator(CHUNK), left_out=cut)

    def list_context(self, request: HttpRequest, sort: Sort, chosen: Chosen) -> dict[str, Any]:
        """Return the variables of a list's rows and of `list/_heads.html`, `list/_bulk.html`."""
        allowed = [one for one in self.actions if request.user.has_perm(one.permission)]
        return {
            "list_name": self.name,
            "drawn_at": timezone.now(),
            "folded_actions": any(one.folded for one in allowed),
            "heads": self.heads(request, sort, chosen),
            "shown": dict.fromkeys(chosen.shown, True),
            "actions": allowed,
            "query": self.query_of(request),
            "filtered": self.filters_of(request),
        }

    def context(
        self,
        request: HttpRequest,
        filters: FilterSet,
        suggested: Iterable[str],
        views: Iterable[View] = (),
        *,
        chosen: Chosen | None = None,
    ) -> dict[str, Any]:
        """Return the variables of the parts above a list."""
        chosen = chosen or self.chosen(request)
        query = self.filters_of(request)
        saved = views_of(request.user, self.name)
        here = sorted(parse_qsl(query))
        own = [{"view": one, "current": sorted(parse_qsl(_filters(one.query))) == here} for one in saved]
        drawn = QueryBar.context(self, request, filters, suggested, views)
        known = [one for one in (*drawn["views"], *own) if one["current"]]
        return {
            **drawn,
            "saved_views": own,
            "current_view": next((one["view"] for one in own if one["current"]), None),
            "may_save": bool(query) and not known and filters.is_valid() and len(saved) < MOST,
            "column_choices": [(one, one.name in chosen.shown) for one in self.columns if not one.fixed],
            "sizes": [(size, size == chosen.size) for size in SIZES],
        }


def _filters(query: str) -> str:
    return urlencode([(name, value) for name, value in parse_qsl(query) if name not in NO_FILTERS])


def _place(sort: Sort, request: HttpRequest, name: str) -> Place | None:
    try:
        return read_place(sort, request.GET.get(name, ""))
    except ValueError:
        return None


PAGES: dict[str, ListPage] = {}
"""The declared lists by name."""


def declare(page: ListPage) -> ListPage:
    """Make a list known to what all lists share."""
    PAGES[page.name] = page
    return page
