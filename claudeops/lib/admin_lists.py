"""Admin lists that stay fast with a million rows: capped counts, filters served by an index, read-only records."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property

from claudeops.lib.distinct import distinct_values

CAP = 10_000
"""Most rows that are counted; beyond, a list shows "10,000+"."""


class CappedPaginator(Paginator):
    @cached_property
    def count(self) -> int:
        return min(self.counted, CAP)

    @cached_property
    def counted(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows.order_by()[: CAP + 1].count()

    @property
    def capped(self) -> bool:
        return self.counted > CAP

    @property
    def shown(self) -> str:
        return f"{self.count:,}" + ("+" if self.capped else "")


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


class ReadOnlyAdmin(ListAdmin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class _ValueFilter(admin.SimpleListFilter):
    column: ClassVar[str]
    null: ClassVar[str]

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Iterable[tuple[str, str]]:
        found = [(str(value), str(value)) for value in distinct_values(model_admin.model, self.column)]
        return [*found, (self.null, self.null)] if found and self.null else found

    def has_output(self) -> bool:
        """Hide a filter that has one choice, unless it is set."""
        return len(self.lookup_choices) > 1 or self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        if value not in {name for name, _ in self.lookup_choices}:
            return queryset.none()  # with all rows a bulk action would apply to them
        return queryset.filter(**{self.column: None if value == self.null else value})


def value_filter(column: str, null: str = "") -> type[admin.SimpleListFilter]:
    """Make a list filter of the values in an indexed column; `null` names the rows without one."""
    names = {"title": column, "parameter_name": column, "column": column, "null": null}
    return type(f"{column.capitalize()}Filter", (_ValueFilter,), names)


AGES: dict[str, tuple[str, timedelta, str]] = {
    "hour": ("the last hour", timedelta(hours=1), "gte"),
    "day": ("the last 24 hours", timedelta(days=1), "gte"),
    "week": ("the last 7 days", timedelta(days=7), "gte"),
    "month": ("the last 30 days", timedelta(days=30), "gte"),
    "older": ("more than 30 days ago", timedelta(days=30), "lt"),
    "old": ("more than 90 days ago", timedelta(days=90), "lt"),
}


class _AgeFilter(admin.SimpleListFilter):
    parameter_name = "age"
    column: ClassVar[str]

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Iterable[tuple[str, str]]:
        return [(key, label) for key, (label, _, _) in AGES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        if value not in AGES:
            return queryset.none()
        _, length, than = AGES[value]
        return queryset.filter(**{f"{self.column}__{than}": timezone.now() - length})


def age_filter(column: str, title: str) -> type[admin.SimpleListFilter]:
    return type("AgeFilter", (_AgeFilter,), {"title": title, "column": column})
