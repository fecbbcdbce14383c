"""What every admin page of claudeops is built from: lists that stay quick at a million rows, read-only history.

Shared by the admins of both apps, as `cli.py` is by their commands. Knows no model of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.paginator import Paginator
from django.db import connection
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property

from memories.taxonomy import GENERAL

CAP = 10_000
"""Up to here a list is counted; beyond, it says "10,000+". Counting on would read the whole table on each view."""

MOST_CHOICES = 200


class CappedPaginator(Paginator):
    """Counts no further than CAP rows."""

    @cached_property
    def count(self) -> int:
        return min(self.counted, CAP)

    @cached_property
    def counted(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by()[: CAP + 1].count()

    @property
    def capped(self) -> bool:
        """Whether there are more rows than were counted."""
        return self.counted > CAP

    @property
    def shown(self) -> str:
        return f"{self.count:,}" + ("+" if self.capped else "")


class LeanChangeList(ChangeList):
    """A list that leaves out the columns it does not show and knows between which days its rows lie."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name = str(self.opts.verbose_name_plural)
        self.title = name[:1].upper() + name[1:]

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows = super().get_queryset(request, exclude_parameters)
        left_out = self.model_admin.list_defer  # type: ignore[attr-defined]
        return rows.defer(*left_out) if left_out else rows

    @cached_property
    def days(self) -> tuple[date, date] | None:
        """The first and the last day (UTC) of all rows, by two looks into an index; None when there are none.

        Django's own date hierarchy truncates every row's date on every view.
        """
        if not self.date_hierarchy:
            return None
        times = self.root_queryset.exclude(**{self.date_hierarchy: None}).values_list(self.date_hierarchy, flat=True)
        # One after the other: SQLite reads the whole table for MIN and MAX in one statement.
        first = times.order_by(self.date_hierarchy).first()
        last = times.order_by(f"-{self.date_hierarchy}").first()
        return None if first is None or last is None else (first.date(), last.date())


class LeanAdmin(admin.ModelAdmin):
    """A list and a page that cost the same whatever the number of rows."""

    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 200
    list_defer: ClassVar[tuple[str, ...]] = ()
    """Columns the list does not show and therefore does not read."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LeanChangeList

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A choice of another row without four icons beside it: rows are added and edited on their own pages."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if isinstance(getattr(field, "widget", None), RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget  # type: ignore[union-attr]
        return field

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Django's own `delete_selected` lists every row it would delete; where rows may go, we have our own."""
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions


class ReadOnlyAdmin(LeanAdmin):
    """Rows that record what happened: looked at, never added, changed or deleted here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def distinct_values(model: type[Model], field: str, most: int = MOST_CHOICES) -> list[str]:
    """The values of an indexed column, sorted, without null, at most `most` of them.

    Jumps through the index from value to value; DISTINCT would read all of it.
    """
    table, column = (connection.ops.quote_name(name) for name in (model._meta.db_table, field))
    sql = (
        f"WITH RECURSIVE found(value) AS ("  # noqa: S608  (names of our own models, quoted)
        f"SELECT MIN({column}) FROM {table} UNION ALL "
        f"SELECT (SELECT MIN({column}) FROM {table} WHERE {column} > found.value) FROM found "
        f"WHERE found.value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [most])
        return [row[0] for row in cursor.fetchall()]


class ServiceFilter(admin.SimpleListFilter):
    """By service; what belongs to none is `general`."""

    title = "service"
    parameter_name = "service"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Iterable[tuple[str, str]]:
        found = distinct_values(model_admin.model, "service")
        return [(name, name) for name in (*found, *([GENERAL] if found else []))]

    def has_output(self) -> bool:
        return bool(self.lookup_choices) or self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(service=None) if value == GENERAL else queryset.filter(service=value)


AGES: tuple[tuple[str, str, timedelta, bool], ...] = (
    ("hour", "the last hour", timedelta(hours=1), False),
    ("day", "the last 24 hours", timedelta(days=1), False),
    ("week", "the last 7 days", timedelta(days=7), False),
    ("month", "the last 30 days", timedelta(days=30), False),
    ("older", "more than 30 days ago", timedelta(days=30), True),
    ("old", "more than 90 days ago", timedelta(days=90), True),
)


def age_filter(field: str, name: str) -> type[admin.SimpleListFilter]:
    """A list filter by the age of the time in `field`; `name` is its title."""

    class AgeFilter(admin.SimpleListFilter):
        title = name
        parameter_name = "age"

        def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Iterable[tuple[str, str]]:
            return [(key, label) for key, label, *_ in AGES]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            for key, _label, length, older in AGES:
                if key == self.value():
                    return queryset.filter(**{f"{field}__{'lt' if older else 'gte'}": timezone.now() - length})
            return queryset if self.value() is None else queryset.none()

    return AgeFilter


def choice_filter(
    name: str,
    parameter: str,
    choices: Callable[[], Iterable[tuple[str, str]]],
    select: Callable[[QuerySet[Any], str], QuerySet[Any]],
) -> type[admin.SimpleListFilter]:
    """A list filter with `choices` (value, label); `select` narrows the rows to one value."""

    class ChoiceFilter(admin.SimpleListFilter):
        title = name
        parameter_name = parameter

        def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Iterable[tuple[str, str]]:
            return list(choices())

        def has_output(self) -> bool:
            """One choice is none; but a filter that is set must be seen, and be applied."""
            return len(self.lookup_choices) > 1 or self.value() is not None

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            value = self.value()
            if value is None:
                return queryset
            # A value that is no choice matches nothing: "everything" would be handed to a bulk action.
            return select(queryset, value) if value in {key for key, _ in self.lookup_choices} else queryset.none()

    return ChoiceFilter


def counted(**numbers: int) -> dict[str, int]:
    """Numbers by what is counted, in the singular where there is one: counted(log_entries=1) is {"log entry": 1}."""
    found = {}
    for name, number in numbers.items():
        words = name.replace("_", " ")
        if number == 1:
            words = words[:-3] + "y" if words.endswith("ies") else words.removesuffix("s")
        found[words] = number
    return found
