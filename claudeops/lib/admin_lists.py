"""Admin lists that stay fast with a million rows: capped counts, filters served by an index, read-only records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.contrib.messages import ERROR, SUCCESS
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property

from claudeops.lib.capped import CAP, Count, count_of
from claudeops.lib.distinct import distinct_values
from claudeops.lib.domain_error import DomainError


class CappedPaginator(Paginator):
    """Count rows up to a cap; beyond, a list shows "10,000+"."""

    @cached_property
    def counted(self) -> Count:
        return count_of(self.object_list)  # type: ignore[arg-type]

    @cached_property
    def count(self) -> int:
        return min(self.counted.value, CAP)

    @property
    def shown(self) -> str:
        return self.counted.shown


class _List(ChangeList):
    """A change list titled by its model, which does not read the columns in `list_defer`.

    Its rows lead to their pages on the dashboard where they have one (`ListAdmin.page_permission`).
    """

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.title = str(self.opts.verbose_name_plural).capitalize()
        permission = self.model_admin.page_permission  # type: ignore[attr-defined]
        self._leads_to_pages = bool(permission) and not self.is_popup and request.user.has_perm(permission)
        if self._leads_to_pages:
            self.preserved_filters = ""  # the admin's own parameter, which no other page reads

    def url_for_result(self, result: Model) -> str:
        page = self.model_admin.get_view_on_site_url(result) if self._leads_to_pages else None
        return str(page or super().url_for_result(result))

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows = super().get_queryset(request, exclude_parameters)
        return rows.defer(*self.model_admin.list_defer)  # type: ignore[attr-defined]


class ListAdmin(admin.ModelAdmin):
    """An admin whose list and form cost the same for any number of rows."""

    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    paginator = CappedPaginator
    list_per_page = 50
    list_max_show_all = 200
    list_defer: ClassVar[tuple[str, ...]] = ()
    """Big columns that the list does not read."""
    page_permission: ClassVar[str] = ""
    """Who may see the page of a row, `view_on_site`. For them the list leads there; empty: to the admin's form."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return _List

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Remove the add and edit icons beside a choice of another row."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if isinstance(getattr(field, "widget", None), RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget  # type: ignore[union-attr]
        return field

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Remove Django's `delete_selected`, which lists every row it would delete."""
        actions: dict[str, Any] = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def do_each(
        self, request: HttpRequest, rows: Iterable[Any], do: Callable[[Any], str], refused: str, level: int = ERROR
    ) -> None:
        """Do something with each row and show what came of it; a refusal after the words of `refused`, with its fix."""
        for row in rows:
            try:
                self.message_user(request, do(row), SUCCESS)
            except DomainError as error:
                self.message_user(request, f"{refused.format(row)} {error} {error.fix}".strip(), level)


class ReadOnlyAdmin(ListAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_delete_permission = has_change_permission


def value_filter(column: str, null: str = "") -> type[admin.SimpleListFilter]:
    """Make a list filter of the values in an indexed column; `null` names the rows without one."""

    class ValueFilter(admin.SimpleListFilter):
        title = parameter_name = column

        def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Iterable[tuple[str, str]]:
            choices = [(str(value), str(value)) for value in distinct_values(model_admin.model, column)]
            return [*choices, (null, null)] if choices and null else choices

        def has_output(self) -> bool:
            """Hide a filter that has one choice, unless it is set."""
            return len(self.lookup_choices) > 1 or self.value() is not None

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            value = self.value()
            if value is None:
                return queryset
            if value not in {name for name, _ in self.lookup_choices}:
                return queryset.none()  # with all rows a bulk action would apply to them
            return queryset.filter(**{column: None if value == null else value})

    return ValueFilter


AGES: dict[str, tuple[str, timedelta, str]] = {
    "hour": ("the last hour", timedelta(hours=1), "gte"),
    "day": ("the last 24 hours", timedelta(days=1), "gte"),
    "week": ("the last 7 days", timedelta(days=7), "gte"),
    "month": ("the last 30 days", timedelta(days=30), "gte"),
    "older": ("more than 30 days ago", timedelta(days=30), "lt"),
    "old": ("more than 90 days ago", timedelta(days=90), "lt"),
}


def age_filter(column: str, title: str) -> type[admin.SimpleListFilter]:
    """Make a list filter of the age of a time."""
    heading = title

    class AgeFilter(admin.SimpleListFilter):
        title, parameter_name = heading, "age"

        def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Iterable[tuple[str, str]]:
            return [(key, label) for key, (label, _, _) in AGES.items()]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            value = self.value()
            if value is None:
                return queryset
            if value not in AGES:
                return queryset.none()
            _, length, than = AGES[value]
            return queryset.filter(**{f"{column}__{than}": timezone.now() - length})

    return AgeFilter


def read_only(
    model: type[Model],
    columns: str,
    *,
    filters: str | Sequence[Any] = "",
    at: str = "",
    sort: str | None = None,
    search: str = "",
    related: str = "",
    defer: str = "",
    base: type[ReadOnlyAdmin] = ReadOnlyAdmin,
    **attributes: Any,
) -> None:
    """Register a list of records that are only read. Names of columns are separated by spaces.

    `at` is the time by whose age they are filtered, and by which they can be sorted unless `sort` names other columns.
    Rows that are shown in a column are read by a join; `related` names others, for what a row is called.
    """
    chosen = filters.split() if isinstance(filters, str) else list(filters)
    shown = columns.split()
    foreign = [field.name for field in model._meta.fields if field.is_relation and field.name in shown]
    own = {
        "list_display": shown,
        "list_filter": [*chosen, age_filter(at, "when")] if at else chosen,
        "list_select_related": related.split() or foreign or False,
        "list_defer": tuple(defer.split()),
        "search_fields": search.split(),
        "sortable_by": (at if sort is None else sort).split(),
    }
    admin.site.register(model, type(f"{model.__name__}Admin", (base,), own | attributes))
