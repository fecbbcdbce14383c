"""The admin of agents, with an action that runs some now.

In its form stands one tool rule a line; a prompt template with a syntax error is refused.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template import Template, TemplateSyntaxError
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from claudeops.lib.admin_lists import ListAdmin
from claudeops.lib.humanize import span
from claudeops.lib.masked import masked_note
from memories.templatetags.claudeops import due, session_link
from sessions_app import queue
from sessions_app.models import Agent, ScheduleKind, Trigger

SCHEDULE = {"enabled", "schedule_kind", "interval_seconds", "cron"}
MOST_AT_ONCE = 50
"""Most agents that can be run at once."""


class RulesField(forms.CharField):
    widget = forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField code", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return list(value)
        return [line.strip() for line in str(value or "").splitlines() if line.strip()]

    def validate(self, value: Any) -> None:
        for rule in value:
            if rule.count("(") != rule.count(")"):
                raise ValidationError(f"{rule!r} has an unbalanced parenthesis.")

    def run_validators(self, value: Any) -> None:
        return None

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.to_python(initial) != self.to_python(data))


class AgentForm(forms.ModelForm):
    allowed_tools = RulesField(
        required=False, help_text="One a line, like Bash(docker ps *). Empty: CLAUDEOPS_ALLOWED_TOOLS."
    )
    disallowed_tools = RulesField(required=False, help_text="One a line, besides CLAUDEOPS_DISALLOWED_TOOLS.")

    class Meta:
        model = Agent
        fields = "__all__"
        labels = {
            "schedule_kind": "Runs",
            "interval_seconds": "Every … seconds",
            "max_turns": "Turns",
            "max_budget_usd": "Dollars a session",
            "timeout_seconds": "Seconds",
            "memory_budget": "Tokens of memory",
            "replay_stream": "Recorded stream",
        }
        widgets = {
            "description": forms.Textarea(attrs={"rows": 2, "class": "vLargeTextField"}),
            "prompt_template": forms.Textarea(attrs={"rows": 14, "class": "vLargeTextField code"}),
        }

    def clean_prompt_template(self) -> str:
        text = str(self.cleaned_data["prompt_template"])
        try:
            Template(text)
        except TemplateSyntaxError as error:
            raise ValidationError(f"The template cannot be read: {error}.") from error
        return text


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
        def queued(agent: Agent) -> str:
            session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by=request.user.get_username())
            return format_html("Queued {} of {}. {}", session_link(session.pk), agent.slug, session.hold_reason)

        self.do_each(request, queryset.defer(None)[:MOST_AT_ONCE], queued, "{0.slug} is not run:")
