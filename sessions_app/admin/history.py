"""The admin of what was recorded: events, remediations, checks, receipts, log lines, workers. Read-only."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ReadOnlyAdmin, ServiceFilter
from memories.taxonomy import GENERAL
from memories.templatetags.claudeops import ago, badge, exact, meter
from sessions_app.admin import filters
from sessions_app.admin.links import cut, session_link
from sessions_app.models import (
    CooldownAction,
    CooldownClearance,
    Event,
    InjectionReceipt,
    LogEntry,
    ServiceCheck,
    WorkerHeartbeat,
)

ALIVE = timedelta(seconds=60)
"""A worker beats every few seconds; without a beat for this long it is silent."""


class _OfSession(ReadOnlyAdmin):
    """A record that belongs to a session."""

    @admin.display(description="session")
    def of_session(self, row: Any) -> SafeString:
        return session_link(row.session_id)


@admin.register(Event)
class EventAdmin(_OfSession):
    list_display = ("text", "shown_level", "about", "of_session", "when")
    list_display_links = ("text",)
    list_filter = (filters.LevelFilter, ServiceFilter, filters.CreatedFilter)
    search_fields = ("message",)
    date_hierarchy = "created_at"
    sortable_by = ("when",)
    fields = ("shown_level", "about", "message", "of_session", "exactly")

    @admin.display(description="event")
    def text(self, event: Event) -> str:
        return cut(event.message, 200)

    @admin.display(description="level")
    def shown_level(self, event: Event) -> SafeString:
        return badge(event.level, event.get_level_display())

    @admin.display(description="service")
    def about(self, event: Event) -> str | SafeString:
        return event.service or format_html('<span class="quiet">{}</span>', GENERAL)

    @admin.display(description="when", ordering="created_at")
    def when(self, event: Event) -> SafeString:
        return ago(event.created_at)

    @admin.display(description="when")
    def exactly(self, event: Event) -> str | SafeString:
        return exact(event.created_at)


@admin.register(CooldownAction)
class CooldownActionAdmin(_OfSession):
    list_display = ("what", "service", "shown_outcome", "text", "of_session", "when")
    list_filter = (
        filters.ActionFilter,
        filters.OutcomeFilter,
        ServiceFilter,
        filters.DryRunFilter,
        filters.CreatedFilter,
    )
    search_fields = ("service", "message")
    date_hierarchy = "created_at"
    sortable_by = ("when",)
    fields = ("action", "service", "shown_outcome", "message", "dry_run", "of_session", "exactly")

    @admin.display(description="action")
    def what(self, row: CooldownAction) -> str | SafeString:
        shown = row.get_action_display()
        return format_html("{} {}", shown, badge("dry", "dry run")) if row.dry_run else shown

    @admin.display(description="outcome")
    def shown_outcome(self, row: CooldownAction) -> SafeString:
        return badge(row.outcome, row.get_outcome_display())

    @admin.display(description="message")
    def text(self, row: CooldownAction) -> str:
        return cut(row.message, 160)

    @admin.display(description="when", ordering="created_at")
    def when(self, row: CooldownAction) -> SafeString:
        return ago(row.created_at)

    @admin.display(description="when")
    def exactly(self, row: CooldownAction) -> str | SafeString:
        return exact(row.created_at)


@admin.register(CooldownClearance)
class CooldownClearanceAdmin(ReadOnlyAdmin):
    list_display = ("service", "what", "by", "why", "when")
    list_filter = (ServiceFilter, filters.ClearedFilter)
    search_fields = ("service", "by", "reason")
    sortable_by = ()
    fields = ("service", "what", "by", "reason", "exactly")

    @admin.display(description="action")
    def what(self, row: CooldownClearance) -> str:
        return row.get_action_display() or "both"

    @admin.display(description="reason")
    def why(self, row: CooldownClearance) -> str:
        return cut(row.reason, 160)

    @admin.display(description="when")
    def when(self, row: CooldownClearance) -> SafeString:
        return ago(row.cleared_at)

    @admin.display(description="when")
    def exactly(self, row: CooldownClearance) -> str | SafeString:
        return exact(row.cleared_at)


@admin.register(ServiceCheck)
class ServiceCheckAdmin(_OfSession):
    list_display = ("service", "shown_health", "text", "of_session", "when")
    list_filter = (filters.HealthFilter, ServiceFilter, filters.CheckedFilter)
    search_fields = ("service", "status", "detail")
    sortable_by = ("service",)
    fields = ("service", "shown_health", "status", "detail", "of_session", "exactly")

    @admin.display(description="found")
    def shown_health(self, check: ServiceCheck) -> SafeString:
        return badge("healthy" if check.healthy else "unhealthy", check.status)

    @admin.display(description="detail")
    def text(self, check: ServiceCheck) -> str:
        return cut(check.detail, 160)

    @admin.display(description="when")
    def when(self, check: ServiceCheck) -> SafeString:
        return ago(check.checked_at)

    @admin.display(description="when")
    def exactly(self, check: ServiceCheck) -> str | SafeString:
        return exact(check.checked_at)


@admin.register(InjectionReceipt)
class InjectionReceiptAdmin(_OfSession):
    change_form_template = "admin/sessions_app/injectionreceipt/change_form.html"
    list_display = ("receipt", "of_session", "used", "told", "left", "when")
    list_filter = (filters.CreatedFilter,)
    list_defer = ("text", "included", "left_out")
    sortable_by = ()
    fields = ("tokens",)

    @admin.display(description="receipt")
    def receipt(self, row: InjectionReceipt) -> str:
        return row.sha256[:12]

    @admin.display(description="tokens of the budget")
    def used(self, row: InjectionReceipt) -> SafeString:
        return format_html(
            '<span class="confidence">{}<span class="number">{} of {}</span></span>',
            meter(row.tokens, row.budget),
            f"{row.tokens:,}",
            f"{row.budget:,}",
        )

    @admin.display(description="told")
    def told(self, row: InjectionReceipt) -> str:
        return f"{row.counts.get('included', 0):,}"

    @admin.display(description="left out")
    def left(self, row: InjectionReceipt) -> str:
        return f"{sum(count for name, count in row.counts.items() if name not in ('eligible', 'included')):,}"

    @admin.display(description="when")
    def when(self, row: InjectionReceipt) -> SafeString:
        return ago(row.created_at)


@admin.register(LogEntry)
class LogEntryAdmin(_OfSession):
    list_display = ("line", "shown_kind", "of_session", "when")
    list_filter = (filters.KindFilter,)
    ordering = ("-pk",)
    sortable_by = ()
    fields = ("of_session", "seq", "shown_kind", "text", "exactly", "offset")

    @admin.display(description="line")
    def line(self, entry: LogEntry) -> str:
        return cut(entry.text, 200)

    @admin.display(description="kind")
    def shown_kind(self, entry: LogEntry) -> SafeString:
        return badge("log", entry.get_kind_display())

    @admin.display(description="when")
    def when(self, entry: LogEntry) -> SafeString:
        return ago(entry.at)

    @admin.display(description="when")
    def exactly(self, entry: LogEntry) -> str | SafeString:
        return exact(entry.at)


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("host", "cluster", "pid", "state", "started", "beat")
    ordering = ("-beat_at",)
    sortable_by = ()
    fields = ("host", "cluster", "pid", "state", "started", "beat")

    @admin.display(description="state")
    def state(self, worker: WorkerHeartbeat) -> SafeString:
        alive = worker.beat_at >= timezone.now() - ALIVE
        return badge("alive", "alive") if alive else badge("silent", "silent")

    @admin.display(description="started")
    def started(self, worker: WorkerHeartbeat) -> SafeString:
        return ago(worker.started_at)

    @admin.display(description="last heard of")
    def beat(self, worker: WorkerHeartbeat) -> SafeString:
        return ago(worker.beat_at)
