"""The Django admin of agents, sessions and their records. It imports no other surface.

What is only read is one row here each; what can be changed, or shows more than its columns, has a class.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ListAdmin, ReadOnlyAdmin, age_filter, read_only, value_filter
from claudeops.lib.answers import actor
from memories.taxonomy import GENERAL
from memories.templatetags.claudeops import session_link, shortened
from sessions_app import models
from sessions_app.admin.agent import AgentAdmin
from sessions_app.admin.session import SessionAdmin
from sessions_app.events import acknowledgement
from sessions_app.runner.exposure import fits_itself

__all__ = ["AgentAdmin", "EventAdmin", "LogEntryAdmin", "SessionAdmin"]


class OfSessionAdmin(ReadOnlyAdmin):
    """A record that the dashboard shows on its session's page."""

    sortable_by = ()
    exclude = ("session", "fingerprint")
    readonly_fields = ("of_session",)
    page_permission = "sessions_app.view_session"
    part: ClassVar[str] = "?tab=events"
    """Where on the page of its session a record stands; empty: it has no place there."""

    @admin.display(description="session")
    def of_session(self, row: Any) -> SafeString:
        return session_link(row.session_id)

    def view_on_site(self, row: Any) -> str | None:
        return reverse("session", args=[row.session_id]) + self.part if row.session_id else None


class SourceRuleForm(forms.ModelForm):
    """Refuses a rule that would never count."""

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        tool, counts_as = data.get("tool", ""), data.get("counts_as", "")
        if tool and counts_as and not fits_itself(tool, counts_as):
            raise ValidationError(
                {"tool": "No call fits it. Write a program with its subcommands, without sudo, ssh, a path or a star."}
            )
        return data


@admin.register(models.SourceRule)
class SourceRuleAdmin(ListAdmin):
    """What an operator knows of tools: who can write what they show."""

    list_display = ("tool", "counts_as", "reason", "by", "created_at")
    list_filter = ("counts_as",)
    search_fields = ("tool", "reason")
    form = SourceRuleForm

    def save_model(self, request: HttpRequest, obj: models.SourceRule, form: Any, change: bool) -> None:
        obj.by = actor(request)[:150]
        super().save_model(request, obj, form, change)


of_session = partial(read_only, base=OfSessionAdmin, sort="")

of_session(
    models.CooldownAction,
    "action service outcome message dry_run of_session created_at",
    filters=("action", "outcome", value_filter("service"), "dry_run"),
    at="created_at",
    search="service message",
)
of_session(
    models.ServiceCheck,
    "service healthy status detail of_session checked_at",
    filters=("healthy", value_filter("service")),
    at="checked_at",
    search="service status detail",
)
of_session(
    models.InjectionReceipt,
    "sha256 of_session tokens budget created_at",
    at="created_at",
    defer="text included left_out",
    part="?tab=injected",
)
read_only(
    models.PromptReceipt,
    "cli_session_id by_agent transcript_path at",
    filters="by_agent",
    at="at",
    search="cli_session_id",
    page_permission="sessions_app.view_session",
)
of_session(
    models.HookReceipt,
    "event agent project tokens cli_session_id of_session at",
    filters=("event", value_filter("agent")),
    at="at",
    sort="at",
    defer="text",
    search="cli_session_id agent",
    exclude=("session",),
    view_on_site=True,
)
read_only(
    models.CooldownClearance,
    "service action by reason cleared_at",
    filters=(value_filter("service"),),
    at="cleared_at",
    sort="",
    search="service by reason",
)
read_only(models.WorkerHeartbeat, "host cluster pid started_at beat_at", ordering=("-beat_at",))
# The overview leads here, to the workers that were lost within 24 hours.
read_only(
    models.WorkerRun, "host pid queues ending started_at ended_at", filters=("ending", age_filter("ended_at", "ended"))
)
read_only(
    models.HookHeard,
    "event installation last_at calls problem first_at",
    filters=("event", value_filter("installation")),
    sort="last_at",
)
read_only(
    models.Purge,
    "__str__ state by created_at done_at problem",
    filters="state",
    at="created_at",
    defer="work",
    exclude=("work",),
    page_permission="sessions_app.purge_memory",
)


@admin.register(models.Event)
class EventAdmin(OfSessionAdmin):
    list_display = ("message", "level", "service", "of_session", "created_at", "acknowledged_at", "acknowledged_by")
    actions = ("acknowledge",)
    list_filter = ("level", value_filter("service", null=GENERAL), age_filter("created_at", "when"))
    search_fields = ("message",)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("sessions_app.acknowledge_event"))

    @admin.action(description="Acknowledge", permissions=["acknowledge"])
    def acknowledge(self, request: HttpRequest, queryset: QuerySet[models.Event]) -> None:
        rows = models.Event.objects.filter(pk__in=queryset.order_by().values("pk"))
        count = acknowledgement.acknowledge(rows, by=request.user.get_username(), at=timezone.now())
        text = f"{count:,} event{'' if count == 1 else 's'} acknowledged." if count else "None of them is open."
        self.message_user(request, text, messages.SUCCESS if count else messages.WARNING)


@admin.register(models.LogEntry)
class LogEntryAdmin(OfSessionAdmin):
    list_display = ("line", "kind", "of_session", "at")
    list_filter = ("kind",)
    ordering = ("-pk",)

    def view_on_site(self, row: Any) -> str:
        return reverse("session", args=[row.session_id]) + f"?line={row.seq}#line-{row.seq}"

    @admin.display(description="line")
    def line(self, entry: models.LogEntry) -> str:
        return shortened(entry.text, 200)
