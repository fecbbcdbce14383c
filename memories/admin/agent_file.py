"""The admin of agent memory files, their conflicts and what was captured for them: read-only."""

from __future__ import annotations

from django.contrib import admin

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter
from memories.models import AgentCapture, AgentFile, AgentFileConflict


@admin.register(AgentFile)
class AgentFileAdmin(ReadOnlyAdmin):
    list_display = ("agent", "project", "path", "enabled", "state", "size", "written_at", "synced_at")
    list_filter = ("state", "enabled", "project")
    list_select_related = ("project",)
    list_defer = ("text",)
    search_fields = ("agent", "path")
    sortable_by = ("agent", "written_at")
    page_permission = "memories.view_memory"


@admin.register(AgentFileConflict)
class AgentFileConflictAdmin(ReadOnlyAdmin):
    list_display = ("kind", "file", "file_text", "other_text", "author", "found_at", "answer", "answered_by")
    list_filter = ("kind", "answer", age_filter("found_at", "when"))
    list_select_related = ("file__project",)
    search_fields = ("file_text", "other_text")
    sortable_by = ("found_at",)
    page_permission = "memories.view_memory"


@admin.register(AgentCapture)
class AgentCaptureAdmin(ReadOnlyAdmin):
    list_display = ("outcome", "agent", "project", "category", "text", "reason", "at")
    list_filter = ("outcome", "form", age_filter("at", "when"))
    list_select_related = ("project",)
    search_fields = ("agent", "text")
    sortable_by = ("at",)
    page_permission = "memories.view_memory"
