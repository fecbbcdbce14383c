"""The admin of memories. Changes go through the store and the lifecycle's verbs, which write change rows.

Bulk actions are those of the registry; the dashboard's page confirms them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.urls.resolvers import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from claudeops.lib.admin_lists import ListAdmin, age_filter, value_filter
from claudeops.lib.answers import actor, moved
from claudeops.lib.domain_error import DomainError
from claudeops.lib.list_view.selection import UNREADABLE
from claudeops.lib.masked import masked_note
from claudeops.lib.time_field import TimeField
from memories import store
from memories.capture import fields as stored
from memories.errors import MemoriesError
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS, BulkAction
from memories.models import Memory, Source
from memories.models.memory import MemoryQuerySet
from memories.queries.filters import STATUSES, with_status
from memories.taxonomy import GENERAL, TAXONOMIES
from memories.templatetags.claudeops import memory_link, session_link, shortened
from memories.web.bulk import confirm_and_run
from memories.web.forms import SelectionForm, StatementForm, categories, checked, window_field

EDITABLE = ("observation", "service", "category", "confidence", "tags", "persistent", "expires_at", "surface")
LIST = "admin:memories_memory_changelist"
RECORDED = (
    *("session", "source", "exposure", "exposed_to", "trust", "tier", "taxonomy", "project", "agent"),
    *("created_at", "updated_at", "decayed_until", "verdict", "verdict_reason", "approved_by", "approved_at"),
    *("merged_count", "recall_count", "last_recalled_at", "provisional", "confirmed_at", "superseded_by", "uuid"),
)
OTHERS = ("expires_at", "surface", "tags", "reason")


class TagsField(forms.CharField):
    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list | tuple) else value


class MemoryForm(StatementForm, forms.ModelForm):
    """`show_hidden_initial`: what a session changed while the page was open is not the person's change."""

    refused: MemoriesError | None = None
    """The store's error for data that passed this form; the admin sets it to show the form again."""

    observation = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}),
        help_text="What was observed, in one sentence. Line breaks are folded.",
    )
    service = forms.CharField(required=False, empty_value=None, help_text="One word; empty or general: no service.")
    category = forms.ChoiceField(choices=categories)
    confidence = forms.FloatField(
        min_value=0,
        max_value=1,
        required=False,
        widget=forms.NumberInput(attrs={"step": "any", "min": 0, "max": 1}),
        help_text="0 to 1. Empty: the taxonomy's default.",
    )
    tags = TagsField(required=False, help_text="Separated by commas.")
    persistent = forms.BooleanField(required=False, help_text="Never decays.")
    expires_at = TimeField(
        required=False,
        label="Expires",
        help_text="UTC. From then on the memory is inactive.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": 1}, format="%Y-%m-%dT%H:%M:%S"),
    )
    surface = window_field()
    reason = forms.CharField(
        required=False, max_length=500, label="Reason", help_text="Recorded in the memory's history."
    )

    class Meta:
        model = Memory
        fields = EDITABLE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in EDITABLE:
            self.fields[name].show_hidden_initial = True
        if not self.instance.pk:
            self.initial["confidence"] = None
            return
        taxonomy = TAXONOMIES[self.instance.taxonomy]
        self.fields["category"].choices = [(name, name) for name in taxonomy.categories]  # type: ignore[attr-defined]
        self.fields["confidence"].required = True
        self.fields["confidence"].help_text = (
            ""
            if taxonomy.inactive_below is None
            else f"0 to 1. Inactive below {taxonomy.inactive_below:g}; raised to it or above, it is active again."
        )

    def clean_tags(self) -> list[str]:
        tags = [tag.strip() for tag in self.cleaned_data["tags"].split(",") if tag.strip()]
        return list(checked(stored.checked_tags, tags))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.refused is not None:
            self.add_error("observation", f"{self.refused} {self.refused.fix}".strip())
        return cleaned

    def slug_of_taxonomy(self) -> str | None:
        return self.instance.taxonomy if self.instance.pk else super().slug_of_taxonomy()

    def _post_clean(self) -> None:
        """Leave an empty confidence to the taxonomy: it is no value for the row."""
        empty = self.cleaned_data.get("confidence") is None
        if empty:
            self.cleaned_data.pop("confidence", None)
        super()._post_clean()  # type: ignore[misc]
        if empty:
            self.cleaned_data["confidence"] = None


class StatusFilter(admin.SimpleListFilter):
    title = parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Iterable[tuple[str, str]]:
        return STATUSES

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        value = self.value()
        if value is None or not isinstance(queryset, MemoryQuerySet):
            return queryset
        return with_status(cast(MemoryQuerySet, queryset), value) if value in dict(STATUSES) else queryset.none()


@admin.register(Memory)
class MemoryAdmin(ListAdmin):
    form = MemoryForm
    list_display = (
        *("text", "service", "category", "confidence", "active", "verdict", "inactive_reason"),
        *("updated_at", "origin"),
    )
    list_filter = (
        StatusFilter,
        value_filter("service", null=GENERAL),
        value_filter("category"),
        value_filter("taxonomy"),
        "source",
        "exposure",
        "trust",
        "persistent",
        "project",
        age_filter("updated_at", "last confirmed"),
    )
    list_defer: ClassVar[tuple[str, ...]] = ("tags", "verdict_reason")
    search_fields = ("observation", "service")
    search_help_text = "Searches the text and the service."
    sortable_by = ("confidence", "updated_at", "service", "category")
    page_permission = "memories.view_memory"

    @admin.display(description="memory")
    def text(self, memory: Memory) -> str:
        return shortened(memory.observation, 160)

    @admin.display(description="from")
    def origin(self, memory: Memory) -> str | SafeString:
        return session_link(memory.session_id) if memory.session_id else memory.get_source_display()

    def view_on_site(self, memory: Memory) -> str:
        return reverse("memory", args=[memory.pk])

    def get_fieldsets(self, request: HttpRequest, obj: Memory | None = None) -> Any:
        own = ("observation", ("service", "category"), ("confidence", "persistent"), *OTHERS)
        if obj is None:
            return [(None, {"fields": (("taxonomy", "project"), *own)})]
        return [(None, {"fields": own}), ("Recorded", {"fields": RECORDED, "classes": ("collapse",)})]

    def get_readonly_fields(self, request: HttpRequest, obj: Memory | None = None) -> Any:
        return () if obj is None else RECORDED

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Save; when the store refuses, show the form again with the reason."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as refusal:
            request.refused = refusal  # type: ignore[attr-defined]
            return super().changeform_view(request, *args, **kwargs)

    def get_form(self, request: HttpRequest, obj: Memory | None = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"refused": getattr(request, "refused", None)})

    def save_model(self, request: HttpRequest, obj: Memory, form: Any, change: bool) -> None:
        """Save by the store and the verbs. Raises MemoriesError, which `changeform_view` shows."""
        by, reason = actor(request), form.cleaned_data.get("reason", "")
        changes = {name: form.cleaned_data[name] for name in EDITABLE if name in form.changed_data}
        if not change:
            obj.pk = self._remember(form.cleaned_data, by)
            changes = {name: value for name, value in changes.items() if name in ("persistent", "expires_at") and value}
        if set(changes) == {"confidence"}:
            verbs.set_confidence(obj.pk, changes["confidence"], by=by, reason=reason)
        elif change and set(changes) == {"persistent"}:
            verbs.mark_persistent(obj.pk, changes["persistent"], by=by, reason=reason)
        elif changes:
            verbs.edit(obj.pk, by=by, reason=reason, provenance=store.Provenance.typed_by(by), **changes)
        obj.refresh_from_db()
        if note := masked_note(form.data.get("observation", ""), form.data.get("tags", ""), reason):
            self.message_user(request, note.strip(), messages.WARNING)

    def response_add(self, request: HttpRequest, obj: Memory, post_url_continue: str | None = None) -> HttpResponse:
        if "_continue" in request.POST:
            return super().response_add(request, obj, post_url_continue)
        self._say(request, obj, "added")
        another = "_addanother" in request.POST
        return HttpResponseRedirect(request.path) if another else self.response_post_save_add(request, obj)

    def response_change(self, request: HttpRequest, obj: Memory) -> HttpResponse:
        if "_continue" in request.POST or "_addanother" in request.POST:
            return super().response_change(request, obj)
        self._say(request, obj, "changed")
        return self.response_post_save_change(request, obj)

    def _say(self, request: HttpRequest, memory: Memory, done: str) -> None:
        """Say what was done, with a link to the memory's page on the dashboard."""
        self.message_user(request, format_html("{} is {}.", memory_link(memory.pk), done), messages.SUCCESS)

    def _remember(self, values: dict[str, Any], by: str) -> int | None:
        statement = store.Statement(
            category=values["category"],
            text=values["observation"],
            service=values["service"],
            taxonomy=values.get("taxonomy") or "ops",
            confidence=values["confidence"],
            tags=tuple(values["tags"]),
            surface=values["surface"],
        )
        project = values.get("project")
        provenance = store.Provenance(
            source=Source.HUMAN, actor=by, channel="human", project_id=project.pk if project else None
        )
        return store.remember(statement, provenance).memory_id

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

    def delete_model(self, request: HttpRequest, obj: Memory) -> None:
        verbs.delete(obj, by=actor(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        BULK_ACTIONS["delete"].run(queryset, by=actor(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List no related objects: nothing is deleted with a memory, its history stays."""
        return [str(obj) for obj in objs[:20]], {"memories": len(objs)}, set(), []

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        return HttpResponseRedirect(reverse("memory", args=[object_id]))


def _from_list(
    action: BulkAction, modeladmin: MemoryAdmin, request: HttpRequest, queryset: QuerySet[Memory]
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
