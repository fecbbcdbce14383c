"""The admin of observed transcripts, their facts, and the gate's decisions and thresholds: read-only."""

from __future__ import annotations

from django.contrib import admin

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter
from memories.models import Fact, GateDecision, GateThreshold, Transcript, TranscriptPart


@admin.register(Transcript)
class TranscriptAdmin(ReadOnlyAdmin):
    list_display = (
        "source_name",
        "kind",
        "arrived_by",
        "project",
        "agent",
        "exposure",
        "size",
        "observed_to",
        "seen_at",
    )
    list_filter = ("kind", "arrived_by", "exposure", "project", age_filter("seen_at", "when"))
    list_select_related = ("project",)
    list_defer = ("state",)
    search_fields = ("cli_session_id", "agent", "folder")
    sortable_by = ("seen_at",)
    page_permission = "memories.view_memory"


@admin.register(TranscriptPart)
class TranscriptPartAdmin(ReadOnlyAdmin):
    list_display = ("transcript", "number", "state", "start", "end", "model", "created_at", "done_at")
    list_filter = ("state", age_filter("created_at", "when"))
    list_select_related = ("transcript",)
    list_defer = ("prepared", "answer")
    sortable_by = ("created_at",)
    page_permission = "memories.view_memory"


@admin.register(Fact)
class FactAdmin(ReadOnlyAdmin):
    list_display = ("text", "priority", "kind", "category", "classified_by", "verdict", "reason", "outcome", "source")
    list_filter = ("verdict", "outcome", "priority", "kind", "category", "classified_by")
    list_defer = ("excerpt", "match")
    search_fields = ("text", "source")
    sortable_by = ()
    page_permission = "memories.view_memory"


@admin.register(GateDecision)
class GateDecisionAdmin(ReadOnlyAdmin):
    list_display = ("verdict", "words", "channel", "taxonomy", "said_gate", "model", "label", "labelled_by", "at")
    list_filter = ("verdict", "channel", "taxonomy", "label", age_filter("at", "when"))
    list_defer = ("text",)
    search_fields = ("words", "text")
    sortable_by = ("at",)
    page_permission = "memories.view_memory"


@admin.register(GateThreshold)
class GateThresholdAdmin(ReadOnlyAdmin):
    list_display = ("name", "value", "before", "by", "reason", "at")
    list_filter = ("name",)
    sortable_by = ("at",)
    page_permission = "memories.view_memory"
