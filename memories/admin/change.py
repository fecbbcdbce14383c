"""The admin of memories' history: one row for every change, looked at and never touched."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memories.admin.filters import KindFilter, WhenFilter
from memories.adminkit import ReadOnlyAdmin
from memories.history.timeline import all_columns, changed_columns, entry_of
from memories.models import MemoryChange
from memories.templatetags.claudeops import NONE, ago, badge, value_text


@admin.register(MemoryChange)
class MemoryChangeAdmin(ReadOnlyAdmin):
    change_form_template = "admin/memories/memorychange/change_form.html"
    list_display = ("what", "memory_link", "moved", "reason", "actor", "session_link", "when")
    list_filter = (KindFilter, WhenFilter)
    list_select_related = ("memory",)
    list_defer = ("evidence",)
    search_fields = ("memory__observation", "reason", "actor")
    search_help_text = "Searches the memory's text, the reason and who did it."
    date_hierarchy = "at"
    ordering = ("-at", "-id")
    sortable_by = ("when",)
    fields = ("kind",)

    @admin.display(description="what")
    def what(self, change: MemoryChange) -> SafeString:
        return badge(change.kind, change.get_kind_display())

    @admin.display(description="memory")
    def memory_link(self, change: MemoryChange) -> SafeString:
        if change.memory is None:
            return format_html('<span class="quiet" title="{}">deleted</span>', change.memory_uuid)
        text = str(change.memory)
        return format_html(
            '<a href="{}">{}</a>',
            reverse("admin:memories_memory_change", args=[change.memory_id]),
            text if len(text) <= 100 else text[:99] + "…",
        )

    @admin.display(description="from → to")
    def moved(self, change: MemoryChange) -> SafeString:
        short = [move for move in changed_columns(change) if not move.text][:3]
        if change.kind in ("created", "deleted") or not short:
            return NONE
        return format_html_join(
            "",
            '<div class="moved">{}: {} → {}</div>',
            ((move.name, value_text(move.before), value_text(move.after)) for move in short),
        )

    @admin.display(description="session")
    def session_link(self, change: MemoryChange) -> str | SafeString:
        if change.session_id is None:
            return NONE
        url = reverse("admin:sessions_app_session_change", args=[change.session_id])
        return format_html('<a href="{}">session {}</a>', url, change.session_id)

    @admin.display(description="when", ordering="at")
    def when(self, change: MemoryChange) -> SafeString:
        return ago(change.at)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        extra_context = dict(extra_context or {})
        change = MemoryChange.objects.filter(pk=object_id).first() if object_id.isdecimal() else None
        if change is not None:
            extra_context |= {"entry": entry_of(change), "columns": all_columns(change)}
        return super().change_view(request, object_id, form_url, extra_context)
