"""The admin of agents, with an action that runs some now."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ListAdmin
from claudeops.lib.humanize import span
from claudeops.lib.masked import masked_note
from memories.templatetags.claudeops import due, session_link
from sessions_app import queue
from sessions_app.admin.forms import AgentForm
from sessions_app.errors import SessionsError
from sessions_app.models import Agent, ScheduleKind, Trigger

SCHEDULE = {"enabled", "schedule_kind", "interval_seconds", "cron"}
MOST_AT_ONCE = 50
"""Most agents that can be run at once."""


@admin.register(Agent)
class AgentAdmin(ListAdmin):
    form = AgentForm
    list_display = ("slug", "enabled", "schedule", "next_run", "last_run_at", "tier", "model", "runner")
    list_filter = ("enabled", "tier", "runner", "schedule_kind")
    page_permission = "sessions_app.view_session"
    list_defer = ("prompt_template", "description", "allowed_tools", "disallowed_tools")
    search_fields = ("slug", "name", "description")
    sortable_by = ("slug", "tier")
    actions = ("run_now",)
    readonly_fields = ("next_run_at", "last_run_at")
    fieldsets = (
        (None, {"fields": (("slug", "enabled"), "name", "description", "project")}),
        ("Schedule", {"fields": ("schedule_kind", ("interval_seconds", "cron"), ("next_run_at", "last_run_at"))}),
        (
            "Environment",
            {"fields": (("tier", "model"), ("runner", "replay_stream"), "working_directory", "structured_response")},
        ),
        ("Rights", {"fields": ("allowed_tools", "disallowed_tools", "escalates_to")}),
        (
            "Limits",
            {
                "fields": (("max_turns", "max_budget_usd", "timeout_seconds"), "memory_budget"),
                "description": "Empty: the settings'.",
            },
        ),
        ("Prompt", {"fields": ("prompt_template",)}),
    )

    @admin.display(description="runs")
    def schedule(self, agent: Agent) -> str | SafeString:
        if agent.schedule_kind == ScheduleKind.INTERVAL:
            return f"every {span(agent.interval_seconds or settings.CLAUDEOPS_INTERVAL)}"
        if agent.schedule_kind == ScheduleKind.CRON:
            return format_html("<code>{}</code> UTC", agent.cron)
        return "on request"

    @admin.display(description="next run")
    def next_run(self, agent: Agent) -> SafeString:
        return due(agent.next_run_at)

    def view_on_site(self, agent: Agent) -> str:
        return reverse("agent", args=[agent.slug])

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        """Save only the fields that the person changed: the schedule's own columns move meanwhile."""
        changed = [name for name in form.changed_data if name in {field.name for field in Agent._meta.fields}]
        if not change:
            obj.save()
        elif changed:
            obj.save(update_fields=[*changed, "updated_at"])
        if note := masked_note(*(getattr(obj, name) for name in ("name", "description", "prompt_template"))):
            self.message_user(request, note.strip(), messages.WARNING)
        if not change or SCHEDULE & set(changed):
            queue.reschedule(obj)

    def has_run_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("sessions_app.run_session"))

    @admin.action(description="Run now", permissions=["run"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        for agent in queryset.defer(None)[:MOST_AT_ONCE]:
            try:
                made = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by=request.user.get_username())
            except SessionsError as error:
                text = f"{agent.slug} is not run: {error} {error.fix}".strip()
                self.message_user(request, text, messages.ERROR)
            else:
                text = format_html("Queued {} of {}. {}", session_link(made.pk), agent.slug, made.hold_reason)
                self.message_user(request, text, messages.SUCCESS)
