"""Bulk actions in the admin's list of memories; the dashboard's page confirms them."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path, reverse
from django.urls.resolvers import URLPattern
from django.views.decorators.http import require_POST

from claudeops.lib.answers import moved
from claudeops.lib.list_view.selection import UNREADABLE
from memories.lifecycle.bulk import BULK_ACTIONS, BulkAction
from memories.models import Memory
from memories.web.bulk import confirm_and_run
from memories.web.forms import SelectionForm

LIST = "admin:memories_memory_changelist"


class BulkMixin(admin.ModelAdmin):
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.bulk_view))
        return [path("bulk/<slug:name>", view, name="memories_memory_bulk"), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions: dict[str, Any] = super().get_actions(request)
        for action in BULK_ACTIONS.values():
            if self.may(request, action):
                actions[action.name] = (partial(_from_list, action), action.name, action.label)
        return actions

    def may(self, request: HttpRequest, action: BulkAction) -> bool:
        if action.name == "delete":
            return self.has_delete_permission(request)
        return self.has_change_permission(request)

    def bulk_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """POST: `ids` (ranges) or `all_matching`=1 with the list's query string; `confirmed`=1 with the answers."""
        action = BULK_ACTIONS.get(name)
        if action is None:
            raise Http404(f"There is no action {name}.")
        return self.bulk(request, action, everything="all_matching" in request.POST)

    def bulk(self, request: HttpRequest, action: BulkAction, *, everything: bool) -> HttpResponse:
        if not self.may(request, action):
            raise PermissionDenied
        form = SelectionForm(request.POST)
        if not form.is_valid():
            return moved(request, _with_query(request, reverse(LIST)), UNREADABLE, level=messages.ERROR)
        try:
            ids = None if everything else form.chosen(ACTION_CHECKBOX_NAME)
            rows = self._listed(request) if ids is None else Memory.objects.filter(pk__in=ids)
        except IncorrectLookupParameters:
            text = "The list's filters could not be read. Nothing was changed."
            return moved(request, reverse(LIST), text, level=messages.ERROR)
        post_url = _with_query(request, reverse("admin:memories_memory_bulk", args=[action.name]))
        back = _back(request, action)
        return confirm_and_run(request, form, action, rows, ids, back=back, post_url=post_url)

    def _listed(self, request: HttpRequest) -> QuerySet[Memory]:
        listed = self.get_changelist_instance(request).get_queryset(request)
        return listed.order_by().select_related(None).defer(None)


def _from_list(
    action: BulkAction, modeladmin: BulkMixin, request: HttpRequest, queryset: QuerySet[Memory]
) -> HttpResponse:
    return modeladmin.bulk(request, action, everything=request.POST.get("select_across") == "1")


def _with_query(request: HttpRequest, url: str) -> str:
    query = request.META.get("QUERY_STRING", "")
    return f"{url}?{query}" if query else url


def _back(request: HttpRequest, action: BulkAction) -> str:
    """Return to the memory's page after one of its own buttons, unless it was deleted; else to the list."""
    page = request.POST.get("back", "")
    if page.isdecimal() and len(page) < 19 and action.name != "delete":
        return reverse("admin:memories_memory_change", args=[page])
    return _with_query(request, reverse(LIST))
