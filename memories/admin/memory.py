"""The admin of memories: what is known, how sure, how old, and why it is as it is.

Everything that changes a memory here goes through the store and the lifecycle's verbs, so that every change has
its row with the person's name. The source session is linked by id; nothing of the sessions is imported.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.urls.resolvers import URLPattern
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from memories import store
from memories.admin import filters
from memories.admin.bulk import BulkMixin, actor, words
from memories.admin.forms import MemoryForm
from memories.adminkit import LeanAdmin, ServiceFilter, counted
from memories.bulk import BULK_ACTIONS
from memories.errors import MemoriesError
from memories.history.timeline import timeline
from memories.lifecycle import verbs
from memories.models import Memory, Source, Verdict
from memories.taxonomy import GENERAL
from memories.templatetags.claudeops import NONE, ago, badge, confidence, exact

TIMELINE = 100
"""Changes shown on a memory's page, newest first; the rest is one click away."""

EDITABLE = ("observation", "service", "category", "confidence", "tags", "persistent", "expires_at")


@admin.register(Memory)
class MemoryAdmin(BulkMixin, LeanAdmin):
    form = MemoryForm
    change_form_template = "admin/memories/memory/change_form.html"
    list_display = ("what", "about", "category", "sureness", "status", "confirmed", "found_in")
    list_display_links = ("what",)
    list_filter = (
        filters.StatusFilter,
        ServiceFilter,
        filters.CategoryFilter,
        filters.ConfidenceFilter,
        filters.ConfirmedFilter,
        filters.SourceFilter,
        filters.TaxonomyFilter,
        filters.ProjectFilter,
    )
    list_defer: ClassVar[tuple[str, ...]] = ("tags", "verdict_reason")
    search_fields = ("observation", "service")
    search_help_text = "Searches the text and the service."
    date_hierarchy = "updated_at"
    sortable_by = ("sureness", "confirmed", "about", "category")

    @admin.display(description="memory")
    def what(self, memory: Memory) -> str:
        text = memory.observation
        return text if len(text) <= 160 else text[:159] + "…"

    @admin.display(description="service", ordering="service")
    def about(self, memory: Memory) -> str | SafeString:
        return memory.service or format_html('<span class="quiet">{}</span>', GENERAL)

    @admin.display(description="confidence", ordering="confidence")
    def sureness(self, memory: Memory) -> SafeString:
        return confidence(memory.confidence)

    @admin.display(description="status")
    def status(self, memory: Memory) -> SafeString:
        if memory.awaits_review:
            shown = badge("held", "held")
        elif memory.verdict == Verdict.HOLD:
            shown = badge("inactive", "rejected")
        elif memory.active:
            shown = badge("active", "active")
        else:
            why = memory.get_inactive_reason_display() or "inactive"
            shown = format_html('{} <span class="quiet">{}</span>', badge("inactive", "inactive"), why)
        return format_html("{} {}", shown, badge("persistent", "persistent")) if memory.persistent else shown

    @admin.display(description="confirmed", ordering="updated_at")
    def confirmed(self, memory: Memory) -> SafeString:
        return ago(memory.updated_at)

    @admin.display(description="from")
    def found_in(self, memory: Memory) -> str | SafeString:
        if memory.session_id is None:
            return "a person" if memory.source == Source.HUMAN else memory.get_source_display()
        url = reverse("admin:sessions_app_session_change", args=[memory.session_id])
        return format_html('<a href="{}">session {}</a>', url, memory.session_id)

    # -- the page ------------------------------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Memory | None = None) -> Any:
        said = ("observation", ("service", "category"), ("confidence", "persistent"), "expires_at", "tags", "reason")
        if obj is None:
            return [(None, {"fields": (("taxonomy", "project"), *said)})]
        origin = (("found_in", "source", "tier"), ("taxonomy", "project", "agent"))
        kept = (
            ("created", "confirmed", "decay_taken"),
            ("verdict", "verdict_reason"),
            ("approval", "merged_count"),
            ("recalled", "part_of", "holds"),
            "uuid",
        )
        return [
            (None, {"fields": said}),
            ("Where it comes from", {"fields": origin}),
            ("Bookkeeping", {"fields": kept, "classes": ("collapse",)}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Memory | None = None) -> Any:
        if obj is None:
            return ()
        return (
            *("found_in", "source", "tier", "taxonomy", "project", "agent", "created", "confirmed", "decay_taken"),
            *("verdict", "verdict_reason", "approval", "merged_count", "recalled", "part_of", "holds", "uuid"),
        )

    @admin.display(description="created")
    def created(self, memory: Memory) -> SafeString:
        return ago(memory.created_at)

    @admin.display(description="decay taken until")
    def decay_taken(self, memory: Memory) -> str | SafeString:
        return exact(memory.decayed_until)

    @admin.display(description="approved")
    def approval(self, memory: Memory) -> str | SafeString:
        if memory.approved_at is None:
            return NONE
        return format_html("{} by {}", ago(memory.approved_at), memory.approved_by or "somebody whose account is gone")

    @admin.display(description="recalled")
    def recalled(self, memory: Memory) -> str | SafeString:
        if not memory.recall_count:
            return "never"
        return format_html("{} times, last {}", memory.recall_count, ago(memory.last_recalled_at))

    @admin.display(description="now part of")
    def part_of(self, memory: Memory) -> str | SafeString:
        return NONE if memory.superseded_by_id is None else _link(memory.superseded_by_id)

    @admin.display(description="took in")
    def holds(self, memory: Memory) -> str | SafeString:
        ids = list(memory.supersedes.order_by("pk").values_list("pk", flat=True)[:50])
        return format_html_join(", ", "{}", ((_link(pk),) for pk in ids)) if ids else NONE

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Saves; where the store refuses, nothing was saved and the form says why."""
        extra_context = dict(extra_context or {})
        if object_id is not None and object_id.isdecimal():
            extra_context |= self._page(request, int(object_id))
            extra_context["show_delete"] = False  # its button stands with the others, above
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except MemoriesError as refusal:
            request.refused = refusal  # type: ignore[attr-defined]
            return super().changeform_view(request, object_id, form_url, extra_context)

    def _page(self, request: HttpRequest, pk: int) -> dict[str, Any]:
        memory = Memory.objects.filter(pk=pk).only("pk", "active", "verdict", "inactive_reason", "approved_at").first()
        if memory is None:
            return {}
        changes = list(memory.changes.order_by("-at", "-pk")[: TIMELINE + 1])
        names = ["deactivate" if memory.active else "reactivate", "delete"]
        return {
            "timeline": timeline(changes[:TIMELINE]),
            "timeline_more": len(changes) > TIMELINE,
            "page_actions": [BULK_ACTIONS[name] for name in names if self.may(request, BULK_ACTIONS[name])],
            "can_approve": memory.awaits_review and self.has_change_permission(request),
        }

    def get_form(self, request: HttpRequest, obj: Memory | None = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"refused": getattr(request, "refused", None)})

    def get_urls(self) -> list[URLPattern]:
        approve = self.admin_site.admin_view(require_POST(self.approve_view))
        return [path("<int:pk>/approve", approve, name="memories_memory_approve"), *super().get_urls()]

    def approve_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """POST: let a held memory be used."""
        memory = get_object_or_404(Memory, pk=pk)
        if not self.has_change_permission(request, memory):
            raise PermissionDenied
        try:
            change = verbs.approve(memory, by=actor(request))
        except MemoriesError as error:
            self.message_user(request, words(error), messages.ERROR)
        else:
            text = "Approved: from now on sessions are told." if change else "It was approved already."
            self.message_user(request, text, messages.SUCCESS if change else messages.INFO)
        return HttpResponseRedirect(reverse("admin:memories_memory_change", args=[pk]))

    # -- writing -------------------------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Memory, form: Any, change: bool) -> None:
        """Through the verbs, never a bare save. Raises MemoriesError, which `changeform_view` shows."""
        by, reason = actor(request), form.cleaned_data.get("reason", "")
        if not change:
            self._remember(obj, form.cleaned_data, by, reason)
            return
        given = {name: form.cleaned_data[name] for name in EDITABLE if name in form.changed_data}
        if set(given) == {"confidence"}:
            verbs.set_confidence(obj.pk, given["confidence"], by=by, reason=reason)
        elif set(given) == {"persistent"}:
            verbs.mark_persistent(obj.pk, given["persistent"], by=by, reason=reason)
        elif given:
            verbs.edit(obj.pk, by=by, reason=reason, **given)
        obj.refresh_from_db()

    def _remember(self, obj: Memory, values: dict[str, Any], by: str, reason: str) -> None:
        statement = store.Statement(
            category=values["category"],
            text=values["observation"],
            service=values["service"],
            taxonomy=values.get("taxonomy") or "ops",
            confidence=values["confidence"],
            tags=tuple(values["tags"]),
        )
        project = values.get("project")
        said = store.Provenance(
            source=Source.HUMAN, actor=by, channel="human", project_id=project.pk if project else None
        )
        obj.pk = store.remember(statement, said).memory_id
        further = {name: values[name] for name in ("persistent", "expires_at") if values[name]}
        if further and obj.pk is not None:
            verbs.edit(obj.pk, by=by, reason=reason, **further)
        obj.refresh_from_db()

    def delete_model(self, request: HttpRequest, obj: Memory) -> None:
        verbs.delete(obj, by=actor(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        BULK_ACTIONS["delete"].run(queryset, by=actor(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What goes with a memory: nothing. Its history stays, so there is nothing to collect and to list."""
        listed = [str(obj) for obj in objs[:20]]
        return listed, counted(memories=len(objs)), set(), []

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """The timeline is the history."""
        return HttpResponseRedirect(reverse("admin:memories_memory_change", args=[object_id]) + "#timeline")


def _link(pk: int) -> SafeString:
    return format_html('<a href="{}">memory {}</a>', reverse("admin:memories_memory_change", args=[pk]), pk)
