"""Bulk actions in the admin: drawn from the one registry, with a page in between where something must be asked.

The page never holds more than a few rows, whatever the number it is about: ticked rows travel as ranges of ids,
"all that match" as the list's own query string. Between page and answer the selection may change; then it is
shown again instead of carried out.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.urls.resolvers import URLPattern
from django.views.decorators.http import require_POST

from memories.admin.forms import BulkForm
from memories.views.selection import InvalidSelection, Selection, pack, unpack
from memories.errors import MemoriesError
from memories.lifecycle.bulk import BULK_ACTIONS, BulkAction
from memories.lifecycle.merge import check_mergeable
from memories.models import Memory

SAMPLE = 8
"""Rows shown of what an action is about."""

MOST_MERGED = 50
"""Rows that can be compared by eye, and so be merged at once."""


def actor(request: HttpRequest) -> str:
    """Whose name a change made here carries."""
    return str(request.user.get_username())


def words(error: MemoriesError) -> str:
    return f"{error} {error.fix}".strip()


class BulkMixin(admin.ModelAdmin):
    """The bulk actions of a list of memories."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.bulk_view))
        return [path("bulk/<slug:name>", view, name="memories_memory_bulk"), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Every action of the registry that this person may use."""
        actions: dict[str, Any] = super().get_actions(request)
        for action in BULK_ACTIONS.values():
            if self.may(request, action):
                actions[action.name] = (partial(_from_list, action), action.name, action.label)
        return actions

    def may(self, request: HttpRequest, action: BulkAction) -> bool:
        if action.name == "delete":
            return self.has_delete_permission(request)
        return self.has_change_permission(request)

    def bulk_view(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """POST: `ids` (ranges) or `across`=1 with the list's query string; `confirmed`=1 with the answers."""
        action = BULK_ACTIONS.get(name)
        if action is None:
            raise Http404(f"There is no action {name}.")
        if not self.may(request, action):
            raise PermissionDenied
        try:
            selection = Selection(None if request.POST.get("across") else unpack(request.POST.get("ids", "")))
        except InvalidSelection as error:
            self.message_user(request, f"The selection could not be read: {error}", messages.ERROR)
            return HttpResponseRedirect(_list_url(request))
        return self.bulk(request, action, selection)

    def bulk(self, request: HttpRequest, action: BulkAction, selection: Selection) -> HttpResponseBase:
        try:
            rows = self._rows(request, selection)
        except IncorrectLookupParameters:
            self.message_user(request, "The list's filters could not be read. Nothing was changed.", messages.ERROR)
            return HttpResponseRedirect(reverse("admin:memories_memory_changelist"))
        newest = _whole(request.POST.get("up_to")) or _newest()
        if selection.across:
            rows = rows.filter(pk__lte=newest)  # what came since the page was drawn was not seen on it
        count = rows.count()
        if not count:
            self.message_user(request, "None of the chosen memories is left. Nothing was changed.", messages.WARNING)
            return HttpResponseRedirect(_list_url(request))
        merging = action.name == "merge"
        if merging and not 2 <= count <= MOST_MERGED:
            text = f"Choose 2 to {MOST_MERGED} memories to merge; these are {count:,}. Nothing was changed."
            self.message_user(request, text, messages.ERROR)
            return HttpResponseRedirect(_list_url(request))
        if not (action.confirm or action.params or selection.across):
            return self._carry_out(request, action, rows, {}) or HttpResponseRedirect(_back(request))

        sample = list(rows.order_by("-active", "-confidence", "pk")[: MOST_MERGED if merging else SAMPLE])
        if merging:
            try:
                check_mergeable(sample[0], sample[1:])
            except MemoriesError as error:
                self.message_user(request, words(error), messages.ERROR)
                return HttpResponseRedirect(_list_url(request))
        confirmed = request.POST.get("confirmed") == "1"
        form = BulkForm(action, sample if merging else [], request.POST if confirmed else None)
        seen = _whole(request.POST.get("count"))
        if confirmed and form.is_valid() and seen == count:
            values = {name: value for name, value in form.cleaned_data.items() if value not in (None, "")}
            response = self._carry_out(request, action, rows, values, form)
            if response is None and not form.errors:
                return HttpResponseRedirect(_back(request))
        context = {
            **self.admin_site.each_context(request),
            "title": f"{action.label}: {count:,} {'memory' if count == 1 else 'memories'}",
            "opts": self.opts,
            "action": action,
            "form": form,
            "count": count,
            "seen": seen if confirmed and seen != count else None,
            "sample": sample,
            "more": count - len(sample),
            "merging": merging,
            "across": selection.across,
            "packed": "" if selection.ids is None else pack(selection.ids),
            "up_to": newest,
            "back": request.POST.get("back", ""),
            "post_url": _with_query(request, reverse("admin:memories_memory_bulk", args=[action.name])),
            "list_url": _list_url(request),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/memories/memory/bulk.html", context)

    def _rows(self, request: HttpRequest, selection: Selection) -> QuerySet[Memory]:
        if selection.ids is not None:
            return Memory.objects.filter(pk__in=selection.ids)
        listed = self.get_changelist_instance(request).get_queryset(request)
        return listed.order_by().select_related(None).defer(None)

    def _carry_out(
        self,
        request: HttpRequest,
        action: BulkAction,
        rows: QuerySet[Memory],
        values: dict[str, Any],
        form: BulkForm | None = None,
    ) -> HttpResponse | None:
        """Run the action and say what it did; a refusal goes to the form, or to the list without one."""
        try:
            result = action.run(rows, by=actor(request), **values)
        except MemoriesError as error:
            if form is not None:
                form.add_error(None, words(error))
                return None
            self.message_user(request, words(error), messages.ERROR)
            return HttpResponseRedirect(_list_url(request))
        self.message_user(request, result.message, messages.SUCCESS if result.changed else messages.INFO)
        return None


def _from_list(
    action: BulkAction, modeladmin: BulkMixin, request: HttpRequest, queryset: QuerySet[Memory]
) -> HttpResponseBase:
    """An action chosen in the list's menu."""
    if request.POST.get("select_across") == "1":
        return modeladmin.bulk(request, action, Selection(None))
    ids = tuple(pk for pk in map(_whole, request.POST.getlist(ACTION_CHECKBOX_NAME)) if pk is not None)
    return modeladmin.bulk(request, action, Selection(ids))


def _whole(text: str | None) -> int | None:
    """A posted whole number that fits a row's id; None for anything else."""
    if text is None or not text.isdecimal() or len(text) > 18:
        return None
    return int(text)


def _newest() -> int:
    return Memory.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _with_query(request: HttpRequest, url: str) -> str:
    query = request.META.get("QUERY_STRING", "")
    return f"{url}?{query}" if query else url


def _list_url(request: HttpRequest) -> str:
    return _with_query(request, reverse("admin:memories_memory_changelist"))


def _back(request: HttpRequest) -> str:
    """To the memory's page when it was asked for there and the memory is still there; else to the list."""
    pk = _whole(request.POST.get("back"))
    if pk is not None and Memory.objects.filter(pk=pk).exists():
        return reverse("admin:memories_memory_change", args=[pk])
    return _list_url(request)
