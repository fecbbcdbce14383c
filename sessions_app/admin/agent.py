"""The admin of agents: the profiles sessions run with, when they run next, and running one now."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.urls.resolvers import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from claudeops.lib.humanize import span
from memories.adminkit import LeanAdmin
from memories.templatetags.claudeops import NONE, ago, badge, due
from sessions_app import queue
from sessions_app.admin.forms import AgentForm
from sessions_app.admin.links import session_link, session_url
from sessions_app.errors import SessionsError
from sessions_app.models import Agent, ScheduleKind, Session, Status, Trigger

SCHEDULE = {"enabled", "schedule_kind", "interval_seconds", "cron"}


@admin.register(Agent)
class AgentAdmin(LeanAdmin):
    form = AgentForm
    change_form_template = "admin/sessions_app/agent/change_form.html"
    list_display = ("slug", "state", "schedule", "next_run", "last_run", "last_session", "tier", "model_used", "runner")
    list_filter = ("enabled", "tier", "runner", "schedule_kind")
    list_select_related = ("project",)
    list_defer = ("prompt_template", "description", "allowed_tools", "disallowed_tools")
    search_fields = ("slug", "name", "description")
    sortable_by = ("slug", "tier")
    actions = ("run_now",)
    prepopulated_fields = {}
    readonly_fields = ("next_run", "last_run", "last_session")
    fieldsets = (
        (None, {"fields": (("slug", "enabled"), "name", "description", "project")}),
        (
            "When it runs",
            {"fields": ("schedule_kind", ("interval_seconds", "cron"), ("next_run", "last_run", "last_session"))},
        ),
        (
            "What it runs with",
            {"fields": (("tier", "model"), ("runner", "replay_stream"), "working_directory", "structured_response")},
        ),
        ("What it may do", {"fields": ("allowed_tools", "disallowed_tools", "escalates_to")}),
        (
            "Limits",
            {
                "fields": (("max_turns", "max_budget_usd", "timeout_seconds"),),
                "description": "Empty = the settings' limits.",
            },
        ),
        ("Prompt", {"fields": ("prompt_template",)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """With each agent's last session: its id and its status."""
        last = Session.objects.filter(agent=OuterRef("pk")).order_by("-queued_at", "-pk")
        return (
            super()
            .get_queryset(request)
            .annotate(last_id=Subquery(last.values("pk")[:1]), last_status=Subquery(last.values("status")[:1]))
        )

    @admin.display(description="state", ordering="enabled")
    def state(self, agent: Agent) -> SafeString:
        return badge("active", "enabled") if agent.enabled else badge("inactive", "disabled")

    @admin.display(description="runs")
    def schedule(self, agent: Agent) -> str | SafeString:
        if agent.schedule_kind == ScheduleKind.INTERVAL:
            return f"every {span(agent.interval_seconds or settings.CLAUDEOPS_INTERVAL)}"
        if agent.schedule_kind == ScheduleKind.CRON:
            return format_html("<code>{}</code> UTC", agent.cron)
        return "only when asked"

    @admin.display(description="next run")
    def next_run(self, agent: Agent) -> SafeString:
        return due(agent.next_run_at)

    @admin.display(description="last run")
    def last_run(self, agent: Agent) -> SafeString:
        return ago(agent.last_run_at)

    @admin.display(description="last session")
    def last_session(self, agent: Any) -> SafeString:
        last = getattr(agent, "last_id", None)
        if last is None:
            return NONE
        return format_html("{} {}", session_link(last), badge(agent.last_status, Status(agent.last_status).label))

    @admin.display(description="model")
    def model_used(self, agent: Agent) -> str | SafeString:
        if agent.model:
            return agent.model
        return format_html('<span class="quiet">{}</span>', getattr(settings, f"CLAUDEOPS_TIER{agent.tier}_MODEL"))

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        """Saves what the person changed and nothing else: the schedule's own columns move meanwhile."""
        if not change:
            obj.save()
            queue.reschedule(obj)
            return
        changed = [name for name in form.changed_data if name in {field.name for field in Agent._meta.fields}]
        if changed:
            obj.save(update_fields=[*changed, "updated_at"])
        if SCHEDULE & set(changed):
            queue.reschedule(obj)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        extra_context = {**(extra_context or {}), "can_run": self.has_run_permission(request)}
        return super().change_view(request, object_id, form_url, extra_context)

    # -- run now -------------------------------------------------------------------------------------------------

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Who may ask for sessions."""
        return bool(request.user.has_perm("sessions_app.run_session"))

    @admin.action(description="Run now", permissions=["run"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        for agent in queryset.defer(None)[:50]:
            self._run(request, agent)

    def _run(self, request: HttpRequest, agent: Agent) -> Session | None:
        by = str(request.user.get_username())
        try:
            session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by=by)
        except SessionsError as error:
            self.message_user(request, f"{agent.slug} is not run: {error} {error.fix}".strip(), messages.ERROR)
            return None
        waits = f" It waits: {session.hold_reason}" if session.hold_reason else ""
        text = format_html("Asked for {} of {}.{}", session_link(session.pk), agent.slug, waits)
        self.message_user(request, text, messages.SUCCESS)
        return session

    def get_urls(self) -> list[URLPattern]:
        run = self.admin_site.admin_view(require_POST(self.run_view))
        return [path("<int:pk>/run", run, name="sessions_app_agent_run"), *super().get_urls()]

    def run_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """POST: ask for a session of this agent."""
        if not self.has_run_permission(request):
            raise PermissionDenied
        session = self._run(request, get_object_or_404(Agent.objects.select_related("project"), pk=pk))
        if session is None:
            return HttpResponseRedirect(reverse("admin:sessions_app_agent_change", args=[pk]))
        return HttpResponseRedirect(session_url(session.pk))
