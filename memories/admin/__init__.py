"""The Django admin of memories. It imports no other surface and links to the sessions' pages by name.

What is only read is one row here each; what can be changed, or shows more than its columns, has a class.
"""

from __future__ import annotations

from functools import partial

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ListAdmin, ReadOnlyAdmin, age_filter, read_only, value_filter
from memories import models
from memories.admin.memory import MemoryAdmin
from memories.admin.token import ApiTokenAdmin
from memories.history.timeline import changed_columns
from memories.lifecycle.projects import OF_FILES
from memories.templatetags.claudeops import NONE, badge, dollars, milliseconds, session_link, shortened, value_text

__all__ = ["ApiTokenAdmin", "MemoryAdmin", "MemoryChangeAdmin", "ModelCallAdmin", "ProjectAdmin"]

record = partial(read_only, page_permission="memories.view_memory")

record(
    models.AgentFile,
    "agent project path enabled state size written_at synced_at",
    filters="state enabled project",
    defer="text",
    search="agent path",
    sort="agent written_at",
)
record(
    models.AgentFileConflict,
    "kind file file_text other_text author found_at answer answered_by",
    filters="kind answer",
    at="found_at",
    related="file__project",
    search="file_text other_text",
)
record(
    models.AgentCapture,
    "outcome agent project category text reason at",
    filters="outcome form",
    at="at",
    search="agent text",
)
record(
    models.MemoryFile,
    "__str__ host path branch entries problem read_at",
    related="project",
    defer="text blame pending",
    sort="read_at",
)
record(
    models.MemoryFileCommit,
    "__str__ file kind author added removed at",
    filters="kind",
    at="at",
    related="file__project",
    defer="body",
)
record(
    models.Reflection,
    "__str__ state model until created_at done_at problem",
    filters="state",
    at="created_at",
    related="file__project",
    defer="text answer observations",
)
record(
    models.Proposal,
    "__str__ file section state tier trust confidence decided_by created_at",
    filters="state tier kind trust section",
    at="created_at",
    related="file__project",
    search="text target",
)
record(
    models.ProposalDecision,
    "proposal verdict tier rule reason by at undone_at",
    filters="verdict tier rule",
    at="at",
    defer="before after",
)
record(models.MaintenanceRun, "__str__ state by at finished_at undone_at problem", filters="state", at="at")
record(
    models.TelemetryRecord,
    "action level source component success duration_ms at",
    filters="level success",
    at="at",
    search="action",
)
record(
    models.JournalEntry,
    "at action tool detail by agent project session_id host held",
    filters="action",
    at="at",
    search="tool detail",
)
record(
    models.Decision,
    "project number title status day problems",
    filters="status project",
    search="title text",
)
record(models.Skill, "name project path problem host", filters="project", search="name description")
record(models.JournalFile, "host month lines broken size problem", filters="host")
record(
    models.Transcript,
    "source_name kind arrived_by project agent exposure size observed_to seen_at",
    filters="kind arrived_by exposure project",
    at="seen_at",
    defer="state",
    search="cli_session_id agent folder",
)
record(
    models.TranscriptPart,
    "transcript number state start end model created_at done_at",
    filters="state",
    at="created_at",
    defer="prepared answer",
)
record(
    models.Fact,
    "text priority kind category classified_by verdict reason outcome source",
    filters="verdict outcome priority kind category classified_by",
    defer="excerpt match",
    search="text source",
)
record(
    models.GateDecision,
    "verdict words channel taxonomy said_gate model label labelled_by at",
    filters="verdict channel taxonomy label",
    at="at",
    defer="text",
    search="words text",
)
record(models.GateThreshold, "name value before by reason at", filters="name", sort="at")


@admin.register(models.MemoryChange)
class MemoryChangeAdmin(ReadOnlyAdmin):
    list_display = ("what", "of_memory", "moved", "reason", "actor", "of_session", "at")
    list_filter = ("kind", age_filter("at", "when"))
    list_select_related = ("memory",)
    search_fields = ("memory__observation", "reason", "actor")
    search_help_text = "Searches the memory's text, the reason and the actor."
    sortable_by = ("at",)
    page_permission = "memories.view_memory"
    fields = ("kind", "of_memory", "memory_uuid", "before", "after", "reason", "evidence", "actor", "of_session", "at")

    def view_on_site(self, change: models.MemoryChange) -> str | None:
        return reverse("memory-change", args=[change.memory_id, change.pk]) if change.memory_id else None

    @admin.display(description="kind")
    def what(self, change: models.MemoryChange) -> SafeString:
        return badge(change.kind, change.label)

    @admin.display(description="memory")
    def of_memory(self, change: models.MemoryChange) -> SafeString:
        if change.memory is None:
            return format_html('<span class="quiet" title="{}">deleted</span>', change.memory_uuid)
        return format_html('<a href="{}">{}</a>', self.view_on_site(change), shortened(str(change.memory), 100))

    @admin.display(description="from → to")
    def moved(self, change: models.MemoryChange) -> SafeString:
        short = [move for move in changed_columns(change) if not move.text][:3]
        if change.kind in ("created", "deleted") or not short:
            return NONE
        parts = ((move.name, value_text(move.before), value_text(move.after)) for move in short)
        return format_html_join("", '<div class="moved">{}: {} → {}</div>', parts)

    @admin.display(description="session")
    def of_session(self, change: models.MemoryChange) -> SafeString:
        return session_link(change.session_id)


@admin.register(models.ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    list_display = ("of_role", "of_model", "outcome", "tokens", "cost", "duration", "asked_at", "error")
    list_filter = (value_filter("role"), "outcome", age_filter("asked_at", "when"))
    sortable_by = ("asked_at",)

    @admin.display(description="role")
    def of_role(self, call: models.ModelCall) -> SafeString:
        return format_html('<span class="nowrap">{}</span>', call.role)

    @admin.display(description="model")
    def of_model(self, call: models.ModelCall) -> str:
        return f"{call.backend}:{call.model_used or call.model}"

    @admin.display(description="tokens in, out")
    def tokens(self, call: models.ModelCall) -> str | SafeString:
        counts = (call.tokens_in, call.tokens_out)
        return NONE if counts == (None, None) else ", ".join(f"{number or 0:,}" for number in counts)

    @admin.display(description="cost")
    def cost(self, call: models.ModelCall) -> str | SafeString:
        return dollars(call.cost_usd)

    @admin.display(description="duration")
    def duration(self, call: models.ModelCall) -> str | SafeString:
        return milliseconds(call.duration_ms)


@admin.register(models.Project)
class ProjectAdmin(ListAdmin):
    page_permission = "memories.view_memory"
    list_display = ("slug", "name", "path", "memories_in_prompt", "memory_budget", "used_means", "created_at")
    list_filter = ("used_means", "observed")
    search_fields = ("slug", "name", "description", "path")
    fields = (
        *("slug", "name", "description", "path", "memory_path"),
        *("default_expiry", "memories_in_prompt", "memory_budget", "used_means", "observed"),
        *("trusts_repository", "trusted_authors", "allowed_signers"),
        *OF_FILES,
    )

    def view_on_site(self, project: models.Project) -> str:
        return reverse("project", args=[project.slug])
