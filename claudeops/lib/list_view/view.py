"""A list as a view: its page, its poll, its export, the selection of its bulk actions. A subclass declares the list.

`LISTS` has the declared lists by the name of their address, for what all lists share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self
from urllib.parse import parse_qsl, urlencode

from django.contrib.auth.mixins import PermissionRequiredMixin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.http.response import StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.cache import never_cache
from django_filters import FilterSet

from claudeops.lib import capped
from claudeops.lib.capped import Count, count_of, counts_of
from claudeops.lib.change_token import Changes, ChangeToken, changes_of, read_token
from claudeops.lib.list_view.columns import SIZE, SIZES, Action, BuiltIn, Column, shown_of, size_of
from claudeops.lib.list_view.export import FORMATS, MOST, export
from claudeops.lib.list_view.keyset import Page, Place, Sort, ordered, page_of, read_place
from claudeops.lib.list_view.query import Query, format_query, parameters, parse, unknown_tokens
from claudeops.lib.list_view.selection import UNREADABLE, Selection, UnreadableSelection
from claudeops.lib.preferences.chosen import MOST as MOST_SAVED
from claudeops.lib.preferences.chosen import list_choice_of, views_of

NO_FILTERS = ("sort", "size")
"""Parameters that are kept with the filters and do not narrow the list."""
PLACE = ("after", "before", "rows", "seen", "hold", "format", "q")
"""Parameters that are no filters: the place in the list, the size and state of its poll, the text of the bar."""
MOST_KNOWN = 250
"""Rows that a poll names: those of the page, and those pushed off it that the browser still shows."""

LISTS: dict[str, type[ListView]] = {}


@method_decorator(never_cache, name="dispatch")
class ListView(PermissionRequiredMixin, View):
    """One list; a subclass declares it, an instance is one request.

    Filters are parameters of the address, which holds only what is set; typed text (`q`) redirects to such an address.
    As a poll it answers 204 when the browser (`seen`) shows everything, else with what changed. While a person uses the
    list (list.js asks with `hold`), new rows are held back and said as "3 new".
    """

    http_method_names = ["get", "head", "post"]
    raise_exception = True
    is_poll = False

    name: ClassVar[str]
    """The name of its address, and the id of its element. It polls `NAME-rows` and sends a selection to `NAME-bulk`."""
    permission_required: str
    heading: ClassVar[str]
    one: ClassVar[str]
    """What one row is called, also in the ids of rows: "memory"."""
    many: ClassVar[str] = ""
    """Its plural, where an "s" does not make it."""
    template: ClassVar[str]
    """Its page, which extends `list/page.html`."""
    row_template: ClassVar[str]
    count_template: ClassVar[str] = ""
    """What stands behind the number of rows."""

    model: ClassVar[type[Model]]
    filterset: ClassVar[type[FilterSet]]
    text: ClassVar[str] = "text"
    """The filter of free words."""
    searched: ClassVar[str] = ""
    """Among how many of the newest rows the filters `searching` look, as the page says it; empty: among all."""
    searching: ClassVar[tuple[str, ...]] = ("text",)
    fields: tuple[str, ...]
    """The first fields behind "Filters"; the others follow."""
    example: ClassVar[str]
    """What the empty bar shows."""
    built_in: tuple[BuiltIn, ...]
    columns: tuple[Column, ...]
    sorts: ClassVar[Mapping[str, Sort]]
    """Its orders by key."""
    first: ClassVar[str]
    """The key of the usual order."""
    actions: ClassVar[tuple[Action, ...]] = ()
    row_acts: tuple[str, ...] = ()
    """The permissions of which each gives a row its own actions."""
    counts_page: ClassVar[bool] = False
    """Whether the page says how many of the rows are on it."""
    is_kept: ClassVar[bool] = True
    """Whether a person may keep columns and views of it."""
    polled: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False
    """Whether rows that new ones push off the page stay until it is loaded again: they may be selected."""

    def __init_subclass__(cls, *, has_address: bool = True) -> None:
        super().__init_subclass__()
        if has_address:
            LISTS[cls.name] = cls

    @classmethod
    def as_poll(cls) -> Any:
        return cls.as_view(is_poll=True, http_method_names=["get", "head"])

    @classmethod
    def of(cls, request: HttpRequest, **options: Any) -> Self:
        """Return the list of a request that another view answers."""
        page = cls(**options)
        page.setup(request)
        return page

    # What a subclass may say beside its declaration.

    def all_rows(self) -> QuerySet[Any]:
        return self.model._default_manager.all()

    def listed(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Add what a row shows, and leave out columns that it does not."""
        return rows

    def drawn(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return what the row's template gets as `row` for each of the rows."""
        return rows

    @staticmethod
    def own_views(user: Any) -> Sequence[BuiltIn]:
        """Return built-in views whose filter depends on the time or the person."""
        return ()

    def suggested(self) -> Iterable[str]:
        """Return what the bar offers while a person types."""
        return ()

    def extra(self) -> dict[str, Any]:
        """Return further variables of the page."""
        return {}

    def rows_extra(self) -> dict[str, Any]:
        """Return further variables of the section with the rows, and of what a poll brings."""
        return {}

    def bulk_url(self) -> str:
        return reverse(f"{self.name}-bulk")

    @cached_property
    def state(self) -> str:
        """A short text that changes with the list, cheap to read; it is read before the rows."""
        return ""

    def mark(self, row: Any) -> str:
        """Hash what a row shows; empty: it never changes."""
        return ""

    def touched(self, seen: ChangeToken, known: Sequence[int]) -> set[str]:
        """Return the keys of those of the `known` rows that are to be sent though they look as before."""
        return set()

    def polls(self) -> bool:
        """Whether the page polls: the first may get new rows."""
        return not self.page.back

    # The request.

    @property
    def is_export(self) -> bool:
        return self.request.GET.get("format") in FORMATS

    @cached_property
    def query(self) -> str:
        """The query string's filters and order, without the place in the list."""
        return self.query_without()

    def query_without(self, *names: str) -> str:
        return query_of(self.request.GET, *names)

    @cached_property
    def narrowed(self) -> str:
        """The query string's filters alone; empty for a list of everything."""
        return self.query_without(*NO_FILTERS)

    @property
    def address(self) -> str:
        """The address of the list with its filters."""
        return self.with_query(reverse(self.name))

    def with_query(self, address: str) -> str:
        return f"{address}?{self.query}" if self.query else address

    @cached_property
    def filters(self) -> FilterSet:
        return self.filterset(self.request.GET, queryset=self.all_rows())

    @cached_property
    def query_errors(self) -> list[str]:
        """What the bar's text names that is no filter; a text without errors is never in an address."""
        return unknown_tokens(parse(self.request.GET.get("q", "")), tuple(self.filterset.base_filters))

    @cached_property
    def is_readable(self) -> bool:
        return not self.query_errors and (self._is_bare or self.filters.is_valid())

    @property
    def _is_bare(self) -> bool:
        """Whether nothing can narrow the list; building the filters takes longer than a query."""
        return set(self.request.GET) <= {*PLACE, *NO_FILTERS}

    @cached_property
    def matches(self) -> QuerySet[Any]:
        """All that match, in no order; none when the filters cannot be read."""
        if not self.is_readable:
            return self.all_rows().none()
        return (self.all_rows() if self._is_bare else self.filters.qs).order_by()

    @cached_property
    def shown(self) -> frozenset[str]:
        """The names of the columns that the person has chosen."""
        choice = self._choice
        return shown_of(self.columns, choice.names if choice and choice.columns else None)

    @cached_property
    def size(self) -> int:
        params = self.request.GET
        page_size = size_of(params.get("size", "")) or size_of(params.get("rows", ""))
        return page_size or (self._choice.size if self._choice else SIZE)

    @cached_property
    def _choice(self) -> Any:
        return list_choice_of(self.request.user, self.name) if self.is_kept else None

    @cached_property
    def sort(self) -> Sort:
        return self.sorts.get(self.request.GET.get("sort", ""), self.sorts[self.first])

    def place(self, name: str) -> Place | None:
        """Return the place that the page is `after` or `before`; one that cannot be read is none."""
        try:
            return read_place(self.sort, self.request.GET.get(name, ""))
        except ValueError:
            return None

    @property
    def page_source(self) -> QuerySet[Any]:
        """All that match, as pages of them are read."""
        return self.matches

    @cached_property
    def page(self) -> Page[Any]:
        rows = self.listed(self.page_source)
        return page_of(rows, self.sort, self.size, after=self.place("after"), before=self.place("before"))

    @cached_property
    def rows(self) -> list[Any]:
        return list(self.drawn(self.page.rows))

    @cached_property
    def count(self) -> Count:
        return count_of(self.matches) if self.page.further or self.page.back else Count(len(self.page.rows))

    def selected(self, form: Selection) -> tuple[QuerySet[Any], list[int] | None]:
        """Return the rows of a selection with their ids, None for all that match. Raises UnreadableSelection."""
        if not form.is_valid():
            raise UnreadableSelection(UNREADABLE)
        if form.cleaned_data["all_matching"]:
            if not self.filters.is_valid():
                raise UnreadableSelection("The list's filters could not be read. Nothing was changed.")
            return self.matches, None
        ids = form.chosen()
        return self.all_rows().filter(pk__in=ids), ids

    # Its answers.

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if self.is_poll:
            return self.poll()
        if self.is_export:
            return self.exported()
        return self.redirected() or self.response()

    def exported(self) -> StreamingHttpResponse:
        """Return what the list shows, all of it, in its order, with its columns."""
        columns = [one for one in self.columns if one.name in self.shown]
        return export(self.name, self.request.GET["format"], columns, ordered(self.listed(self.matches), self.sort))

    def redirected(self) -> HttpResponse | None:
        """Return the redirect from the bar's text to the address that has it as filters; None without such a text."""
        if "q" not in self.request.GET or self.query_errors:
            return None
        params = self.request.GET.copy()
        params.pop(self.text, None)
        for name, value in parameters(parse(params.get("q", "")), self.text).items():
            params[name] = value
        query = query_of(params)
        return HttpResponseRedirect(self.request.path + (f"?{query}" if query else ""))

    def response(self, *, status: int = 200, **more: Any) -> HttpResponse:
        return render(self.request, self.template, {**self.context(), **more}, status=status)

    def poll(self) -> HttpResponse:
        token = read_token(self.request.GET.get("seen", ""))
        if token.state and token.state == self.state:
            return HttpResponse(status=204)
        if not self.filters.is_valid():
            return HttpResponse("The filter cannot be read.", status=400, content_type="text/plain")
        client_ids = [int(key) for key in token.rows if key.isdecimal() and len(key) < 19]
        if not client_ids or not self.page.rows:  # an empty list has no row to insert beside
            context = {**self.rows_context(), "layout": "list/_bare.html"}
            response = render(self.request, self.template, context)
            response["HX-Retarget"], response["HX-Reswap"] = f"#{self.name}", "outerHTML"
            return response
        here = {row.pk for row in self.rows}
        holds = "hold" in self.request.GET and not here <= set(client_ids)
        extra_rows: Sequence[Any] = ()
        if (holds or self.keeps_rows) and (
            off := [pk for pk in client_ids if pk not in here][: MOST_KNOWN - len(here)]
        ):
            extra_rows = self.drawn(list(ordered(self.listed(self.page_source.filter(pk__in=off)), self.sort)))
        news = changes_of(
            token.rows, self.rows, _key, self.mark, kept=extra_rows, touched=self.touched(token, client_ids)
        )
        context = {**self.rows_context([*self.rows, *extra_rows]), "news": news}
        if holds:
            context |= self._held(token, news, context["on_page"])
        return render(self.request, "list/_rows.html", context)

    def _held(self, seen: ChangeToken, news: Changes[Any], on_page: int) -> dict[str, Any]:
        """Return the variables of an answer without the new rows.

        The button of `list/_rows.html` asks with a token without a state, which is never up to date.
        """
        rows = {key: mark for key, mark in seen.rows.items() if key not in news.gone}
        rows |= {_key(row): self.mark(row) for row in news.changed}
        params = {name: value for name, value in self.request.GET.items() if name not in ("hold", "seen")}
        return {
            "news": Changes(news.changed, [], news.gone),
            "polling": self._polling(ChangeToken(self.state, rows=rows)),
            "held": len(news.new),
            "held_query": urlencode({**params, "seen": str(ChangeToken(rows=rows))}),
            "on_page": on_page - len(news.new),
        }

    def _polling(self, seen: ChangeToken) -> str:
        params = self.request.GET
        place = {name: params[name] for name in ("before", "after") if self.page.back and params.get(name)}
        # With the number of rows, a poll need not look up what the person has chosen.
        return urlencode({**place, "rows": self.size, "seen": str(seen)})

    def context(self) -> dict[str, Any]:
        """Return the variables of the page."""
        return {**self.rows_context(), **self._bar_context(), **self.extra()}

    def rows_context(self, shown: Sequence[Any] | None = None) -> dict[str, Any]:
        """Return the variables of the section with the rows; `shown` are those in the browser."""
        state = self.state  # before the rows: what changes in between is reported again, not missed
        shown = self.rows if shown is None else shown
        allowed = [one for one in self.actions if self.request.user.has_perm(one.permission)]
        count = self.count
        return {
            "heading": self.heading,
            "list_name": self.name,
            "one_of_them": self.one,
            "many_of_them": self.many or f"{self.one}s",
            "row_template": self.row_template,
            "count_template": self.count_template,
            "drawn_at": timezone.now(),
            "actions": allowed,
            "folded_actions": any(one.folded for one in allowed),
            "heads": self._heads(),
            "shown": dict.fromkeys(self.shown, True),
            "query": self.query,
            "filtered": self.narrowed,
            "is_readable": self.is_readable,
            "page": self.page,
            "rows": self.rows,
            "count": count.shown,
            "total": "" if count.value > capped.CAP else count.value,
            "is_one": count.value == 1,
            "on_page": len(shown),
            "searched": self.searched if any(self.request.GET.get(name) for name in self.searching) else "",
            "polled": self.polled,
            "poll_url": reverse(f"{self.name}-rows") if self.polled else "",
            "bulk_url": self.bulk_url() if allowed else "",
            "row_acts": any(self.request.user.has_perm(one) for one in self.row_acts),
            "picks": bool(allowed),
            "counts_page": self.counts_page,
            "polls": self.polled and self.is_readable and self.polls(),
            "polling": self._polling(ChangeToken(state, rows={_key(row): self.mark(row) for row in shown}))
            if self.polled
            else "",
            **self.rows_extra(),
        }

    def _heads(self) -> list[dict[str, Any]]:
        """Return the heads of the shown columns; one that can be sorted has the query of its link and its order."""
        rest = self.query_without("sort")
        heads = []
        for column in self.columns:
            if column.name not in self.shown:
                continue
            head: dict[str, Any] = {"column": column}
            if column.sort:
                here = self.sort.name == column.sort
                descending = not self.sort.descending if here else not column.rising
                key = ("-" if descending else "") + column.sort
                head["query"] = f"{rest}&sort={key}" if rest else f"sort={key}"
                head["order"] = ("descending" if self.sort.descending else "ascending") if here else "none"
            heads.append(head)
        return heads

    def _bar_context(self) -> dict[str, Any]:
        """Return the variables of what stands above the rows: the views, the bar with its filters, columns, export."""
        fields = {name: self.filters.form[name] for name in self.filters.form.fields if name != self.text}
        words = tuple(self.request.GET.get(self.text, "").split())
        here = _filters(self.narrowed)
        views = self._built_in(here)
        saved = views_of(self.request.user, self.name) if self.is_kept else []
        own = [{"view": one, "current": _filters(one.query) == here} for one in saved]
        is_known = any(one["current"] for one in (*views, *own))
        return {
            "filters": self.filters,
            "filter_fields": [fields[name] for name in dict.fromkeys((*self.fields, *fields))],
            "q": self.request.GET.get("q") or format_query(Query(words=words)),
            "query_errors": self.query_errors,
            "chips": self._chips(),
            "suggested": self.suggested(),
            "example": self.example,
            "views": views,
            "saved_views": own,
            "current_view": next((one["view"] for one in own if one["current"]), None),
            "may_save": self.is_kept
            and bool(self.narrowed)
            and not is_known
            and self.filters.is_valid()
            and len(saved) < MOST_SAVED,
            "column_choices": [(one, one.name in self.shown) for one in self.columns if self.is_kept and not one.fixed],
            "sizes": [(size, size == self.size) for size in SIZES],
            "export_most": f"{MOST:,}",
        }

    def _chips(self) -> list[dict[str, Any]]:
        """Return a chip for each filter that is set."""
        chips = []
        for name in self.filters.form.fields:
            value = self.request.GET.get(name, "")
            if name != self.text and value:
                errors = self.filters.form.errors.get(name, [])
                chips.append({"name": name, "value": value, "without": self.query_without(name), "errors": errors})
        return chips

    def _built_in(self, here: list[tuple[str, str]]) -> list[dict[str, Any]]:
        """Return the built-in views with their counts, all by one query."""
        views = (*self.built_in, *self.own_views(self.request.user))
        counted = []
        for view in views:
            if view.counted:
                filters = dict(_filters(view.query))
                counted.append(self.filterset(filters, queryset=self.all_rows()).qs if filters else self.all_rows())
        counts = iter(counts_of(counted))
        return [
            {
                **view._asdict(),
                "count": Count(next(counts)).shown if view.counted else "",
                "current": _filters(view.query) == here,
            }
            for view in views
        ]


def _key(row: Any) -> str:
    return str(row.pk)


def _filters(query: str) -> list[tuple[str, str]]:
    return sorted((name, value) for name, value in parse_qsl(query) if name not in NO_FILTERS)


def query_of(given: QueryDict, *without: str) -> str:
    """Return the query string of what is set, without the place in the list."""
    return urlencode([(name, value) for name, value in given.items() if value and name not in (*PLACE, *without)])
