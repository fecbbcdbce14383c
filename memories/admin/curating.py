"""The admin of the curated memory, its triage, the nightly maintenance and telemetry: read-only."""

from __future__ import annotations

from django.contrib import admin

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter
from memories.models import (
    MaintenanceRun,
    MemoryFile,
    MemoryFileCommit,
    Proposal,
    ProposalDecision,
    Reflection,
    TelemetryRecord,
)


@admin.register(MemoryFile)
class MemoryFileAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "host", "path", "branch", "entries", "problem", "read_at")
    list_select_related = ("project",)
    list_defer = ("text", "blame", "pending")
    sortable_by = ("read_at",)
    page_permission = "memories.view_memory"


@admin.register(MemoryFileCommit)
class MemoryFileCommitAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "file", "kind", "author", "added", "removed", "at")
    list_filter = ("kind", age_filter("at", "when"))
    list_select_related = ("file__project",)
    list_defer = ("body",)
    sortable_by = ("at",)
    page_permission = "memories.view_memory"


@admin.register(Reflection)
class ReflectionAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "state", "model", "until", "created_at", "done_at", "problem")
    list_filter = ("state", age_filter("created_at", "when"))
    list_select_related = ("file__project",)
    list_defer = ("text", "answer", "observations")
    sortable_by = ("created_at",)
    page_permission = "memories.view_memory"


@admin.register(Proposal)
class ProposalAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "file", "section", "state", "tier", "trust", "confidence", "decided_by", "created_at")
    list_filter = ("state", "tier", "kind", "trust", "section", age_filter("created_at", "when"))
    list_select_related = ("file__project",)
    search_fields = ("text", "target")
    sortable_by = ("created_at",)
    page_permission = "memories.view_memory"


@admin.register(ProposalDecision)
class ProposalDecisionAdmin(ReadOnlyAdmin):
    list_display = ("proposal", "verdict", "tier", "rule", "reason", "by", "at", "undone_at")
    list_filter = ("verdict", "tier", "rule", age_filter("at", "when"))
    list_select_related = ("proposal",)
    list_defer = ("before", "after")
    sortable_by = ("at",)
    page_permission = "memories.view_memory"


@admin.register(MaintenanceRun)
class MaintenanceRunAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "state", "by", "at", "finished_at", "undone_at", "problem")
    list_filter = ("state", age_filter("at", "when"))
    sortable_by = ("at",)
    page_permission = "memories.view_memory"


@admin.register(TelemetryRecord)
class TelemetryRecordAdmin(ReadOnlyAdmin):
    list_display = ("action", "level", "source", "component", "success", "duration_ms", "at")
    list_filter = ("level", "success", age_filter("at", "when"))
    search_fields = ("action",)
    sortable_by = ("at",)
    page_permission = "memories.view_memory"
