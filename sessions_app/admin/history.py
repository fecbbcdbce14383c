"""The read-only admin of events (which can be acknowledged), remediations, checks, receipts, log lines and workers."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter, value_filter
from memories.taxonomy import GENERAL
from memories.templatetags.claudeops import session_link, shortened
from sessions_app.events import acknowledgement
from sessions_app.models import (
    CooldownAction,
    CooldownClearance,
    Event,
    HookHeard,
    HookReceipt,
    InjectionReceipt,
    LogEntry,
    ServiceCheck,
    WorkerHeartbeat,
    WorkerRun,
)


class OfSessionAdmin(ReadOnlyAdmin):
    """A record that the dashboard shows on its session's page."""

    sortable_by = ()
    exclude = ("session", "fingerprint")
    readonly_fields = ("of_session",)
    page_permission = "sessions_app.view_session"
    part: ClassVar[str] = "?tab=events"
    """Where on the page of its session a record stands."""

    @admin.display(description="session")
    def of_session(self, row: Any) -> SafeString:
        return session_link(row.session_id)

    def view_on_site(self, row: Any) -> str | None:
        return reverse("session", args=[row.session_id]) + self.part if row.session_id else None


@admin.register(Event)
class EventAdmin(OfSessionAdmin):
    list_display = ("message", "level", "service", "of_session", "created_at", "acknowledged_at", "acknowledged_by")
    actions = ("acknowledge",)
    list_filter = ("level", value_filter("service", null=GENERAL), age_filter("created_at", "when"))
    search_fields = ("message",)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("sessions_app.acknowledge_event"))

    @admin.action(description="Acknowledge", permissions=["acknowledge"])
    def acknowledge(self, request: HttpRequest, queryset: QuerySet[Event]) -> None:
        rows = Event.objects.filter(pk__in=queryset.order_by().values("pk"))
        count = acknowledgement.acknowledge(rows, by=request.user.get_username(), at=timezone.now())
        text = f"{count:,} event{'' if count == 1 else 's'} acknowledged." if count else "None of them is open."
        self.message_user(request, text, messages.SUCCESS if count else messages.WARNING)


@admin.register(CooldownAction)
class CooldownActionAdmin(OfSessionAdmin):
    list_display = ("action", "service", "outcome", "message", "dry_run", "of_session", "created_at")
    list_filter = ("action", "outcome", value_filter("service"), "dry_run", age_filter("created_at", "when"))
    search_fields = ("service", "message")


@admin.register(CooldownClearance)
class CooldownClearanceAdmin(ReadOnlyAdmin):
    list_display = ("service", "action", "by", "reason", "cleared_at")
    list_filter = (value_filter("service"), age_filter("cleared_at", "when"))
    search_fields = ("service", "by", "reason")
    sortable_by = ()


@admin.register(ServiceCheck)
class ServiceCheckAdmin(OfSessionAdmin):
    list_display = ("service", "healthy", "status", "detail", "of_session", "checked_at")
    list_filter = ("healthy", value_filter("service"), age_filter("checked_at", "when"))
    search_fields = ("service", "status", "detail")


@admin.register(InjectionReceipt)
class InjectionReceiptAdmin(OfSessionAdmin):
    list_display = ("sha256", "of_session", "tokens", "budget", "created_at")
    list_filter = (age_filter("created_at", "when"),)
    list_defer = ("text", "included", "left_out")
    part = "?tab=injected"


@admin.register(LogEntry)
class LogEntryAdmin(OfSessionAdmin):
    list_display = ("line", "kind", "of_session", "at")
    list_filter = ("kind",)
    ordering = ("-pk",)

    def view_on_site(self, row: Any) -> str:
        return reverse("session", args=[row.session_id]) + f"?line={row.seq}#line-{row.seq}"

    @admin.display(description="line")
    def line(self, entry: LogEntry) -> str:
        return shortened(entry.text, 200)


@admin.register(WorkerHeartbeat)
class WorkerHeartbeatAdmin(ReadOnlyAdmin):
    list_display = ("host", "cluster", "pid", "started_at", "beat_at")
    ordering = ("-beat_at",)
    sortable_by = ()


@admin.register(WorkerRun)
class WorkerRunAdmin(ReadOnlyAdmin):
    """The overview leads here, to the workers that were lost within 24 hours."""

    list_display = ("host", "pid", "queues", "ending", "started_at", "ended_at")
    list_filter = ("ending", age_filter("ended_at", "ended"))
    sortable_by = ()


@admin.register(HookHeard)
class HookHeardAdmin(ReadOnlyAdmin):
    list_display = ("event", "installation", "last_at", "calls", "problem", "first_at")
    list_filter = ("event", value_filter("installation"))
    sortable_by = ("last_at",)


@admin.register(HookReceipt)
class HookReceiptAdmin(ReadOnlyAdmin):
    list_display = ("event", "agent", "project", "tokens", "cli_session_id", "of_session", "at")
    list_filter = ("event", value_filter("agent"), age_filter("at", "when"))
    list_select_related = ("project",)
    list_defer = ("text",)
    search_fields = ("cli_session_id", "agent")
    sortable_by = ("at",)
    page_permission = "sessions_app.view_session"
    exclude = ("session",)
    readonly_fields = ("of_session",)

    @admin.display(description="session")
    def of_session(self, row: HookReceipt) -> SafeString:
        return session_link(row.session_id)
