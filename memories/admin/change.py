"""The admin of memory changes: every change of every memory, read-only."""

from __future__ import annotations

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter
from memories.history.timeline import changed_columns
from memories.models import MemoryChange
from memories.templatetags.claudeops import NONE, badge, session_link, shortened, value_text


@admin.register(MemoryChange)
class MemoryChangeAdmin(ReadOnlyAdmin):
    list_display = ("what", "of_memory", "moved", "reason", "actor", "of_session", "at")
    list_filter = ("kind", age_filter("at", "when"))
    list_select_related = ("memory",)
    search_fields = ("memory__observation", "reason", "actor")
    search_help_text = "Searches the memory's text, the reason and the actor."
    sortable_by = ("at",)
    page_permission = "memories.view_memory"
    fields = ("kind", "of_memory", "memory_uuid", "before", "after", "reason", "evidence", "actor", "of_session", "at")

    def view_on_site(self, change: MemoryChange) -> str | None:
        return reverse("memory-change", args=[change.memory_id, change.pk]) if change.memory_id else None

    @admin.display(description="kind")
    def what(self, change: MemoryChange) -> SafeString:
        return badge(change.kind, change.label)

    @admin.display(description="memory")
    def of_memory(self, change: MemoryChange) -> SafeString:
        if change.memory is None:
            return format_html('<span class="quiet" title="{}">deleted</span>', change.memory_uuid)
        return format_html('<a href="{}">{}</a>', self.view_on_site(change), shortened(str(change.memory), 100))

    @admin.display(description="from → to")
    def moved(self, change: MemoryChange) -> SafeString:
        short = [move for move in changed_columns(change) if not move.text][:3]
        if change.kind in ("created", "deleted") or not short:
            return NONE
        parts = ((move.name, value_text(move.before), value_text(move.after)) for move in short)
        return format_html_join("", '<div class="moved">{}: {} → {}</div>', parts)

    @admin.display(description="session")
    def of_session(self, change: MemoryChange) -> SafeString:
        return session_link(change.session_id)
