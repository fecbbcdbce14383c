"""The admin of memories. Changes go through the store and the lifecycle's verbs, which write change rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, cast

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ListAdmin, age_filter, value_filter
from claudeops.lib.answers import actor
from claudeops.lib.masked_note import masked_note
from memories import store
from memories.admin.bulk import BulkMixin
from memories.admin.forms import MemoryForm
from memories.errors import MemoriesError
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.models import Memory, Source
from memories.models.memory import MemoryQuerySet
from memories.queries.filters import STATUSES, with_status
from memories.taxonomy import GENERAL
from memories.templatetags.claudeops import memory_link, session_link, shortened

EDITABLE = ("observation", "service", "category", "confidence", "tags", "persistent", "expires_at", "surface")
RECORDED = (
    *(
        "session",
        "source",
        "exposure",
        "exposed_to",
        "trust",
        "tier",
        "taxonomy",
        "project",
        "agent",
        "created_at",
        "updated_at",
        "decayed_until",
    ),
    *("verdict", "verdict_reason", "approved_by", "approved_at", "merged_count", "recall_count", "last_recalled_at"),
    *("provisional", "confirmed_at", "superseded_by", "uuid"),
)


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
class MemoryAdmin(BulkMixin, ListAdmin):
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
        own = (
            *("observation", ("service", "category"), ("confidence", "persistent")),
            *("expires_at", "surface", "tags", "reason"),
        )
        if obj is None:
            return [(None, {"fields": (("taxonomy", "project"), *own)})]
        return [(None, {"fields": own}), ("Recorded", {"fields": RECORDED, "classes": ("collapse",)})]

    def get_readonly_fields(self, request: HttpRequest, obj: Memory | None = None) -> Any:
        return () if obj is None else RECORDED

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Save; when the store refuses, show the form again with the reason."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except MemoriesError as refusal:
            request.refused = refusal  # type: ignore[attr-defined]
            return super().changeform_view(request, object_id, form_url, extra_context)

    def get_form(self, request: HttpRequest, obj: Memory | None = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"refused": getattr(request, "refused", None)})

    def save_model(self, request: HttpRequest, obj: Memory, form: Any, change: bool) -> None:
        """Save by the store and the verbs. Raises MemoriesError, which `changeform_view` shows."""
        by, reason = actor(request), form.cleaned_data.get("reason", "")
        given = {name: form.cleaned_data[name] for name in EDITABLE if name in form.changed_data}
        if not change:
            obj.pk = self._remember(form.cleaned_data, by)
            given = {name: value for name, value in given.items() if name in ("persistent", "expires_at") and value}
        if set(given) == {"confidence"}:
            verbs.set_confidence(obj.pk, given["confidence"], by=by, reason=reason)
        elif change and set(given) == {"persistent"}:
            verbs.mark_persistent(obj.pk, given["persistent"], by=by, reason=reason)
        elif given:
            verbs.edit(obj.pk, by=by, reason=reason, provenance=store.Provenance.typed_by(by), **given)
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
        said = store.Provenance(
            source=Source.HUMAN, actor=by, channel="human", project_id=project.pk if project else None
        )
        return store.remember(statement, said).memory_id

    def delete_model(self, request: HttpRequest, obj: Memory) -> None:
        verbs.delete(obj, by=actor(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        BULK_ACTIONS["delete"].run(queryset, by=actor(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List no related objects: nothing is deleted with a memory, its history stays."""
        return [str(obj) for obj in objs[:20]], {"memories": len(objs)}, set(), []

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        return HttpResponseRedirect(reverse("memory", args=[object_id]))
