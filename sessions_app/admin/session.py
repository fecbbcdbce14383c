"""The admin of sessions: the list, running or stopping some. Only a superuser may delete an ended one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter, value_filter
from memories.templatetags.claudeops import milliseconds, session_link
from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Event, LogEntry, ServiceCheck, Session

MOST_AT_ONCE = 50
"""Most sessions that can be run again or stopped at once."""


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = (
        *("id", "agent", "status", "status_reason", "tier", "trigger", "cost_usd", "num_turns", "queued_at"),
    )
    list_filter = (
        *("status", "agent", value_filter("tier"), "trigger", "dry_run"),
        age_filter("queued_at", "queued"),
    )
    list_select_related = ("agent",)
    list_defer: ClassVar[tuple[str, ...]] = (
        *("prompt", "injected_text", "response", "structured", "escalation", "usage", "stats", "error", "task"),
        "ingest_state",
    )
    search_fields = ("agent__slug", "summary", "status_reason")
    search_help_text = "A session's number, or words of its agent, its summary and its reason."
    sortable_by = ("queued_at",)
    page_permission = "sessions_app.view_session"
    actions = ("run_again", "retry", "continue_", "stop")
    exclude = ("ingest_state", "log_file", "task", "prompt", "injected_text", "response", "structured", "duration_ms")
    readonly_fields = ("duration", "has_read")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Session], search_term: str
    ) -> tuple[QuerySet[Session], bool]:
        """Read a number as the id of a session."""
        number = search_term.strip().lstrip("#")
        if number.isdecimal() and len(number) < 19:
            return queryset.filter(pk=int(number)), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description="Duration")
    def duration(self, session: Session) -> str:
        return str(milliseconds(session.lasted_ms))

    @admin.display(description="Has read")
    def has_read(self, session: Session) -> str:
        return session.has_read

    def view_on_site(self, session: Session) -> str:
        return reverse("session", args=[session.pk])

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        user = request.user
        return bool(user.is_active and user.is_superuser and not (isinstance(obj, Session) and obj.is_open))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Count what is deleted with a session instead of listing it: its log may have a hundred thousand rows."""
        ids = [obj.pk for obj in objs]
        counts = {
            str(model._meta.verbose_name_plural): model.objects.filter(session__in=ids).count()
            for model in (LogEntry, Event, ServiceCheck)
        }
        return [str(obj) for obj in objs], {"sessions": len(ids), **counts}, set(), []

    def has_run_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("sessions_app.run_session"))

    def has_stop_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("sessions_app.stop_session"))

    @admin.action(description="Run again", permissions=["run"])
    def run_again(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        for session in self._few(request, queryset):
            try:
                made = queue.request_again(session, by=request.user.get_username())
            except SessionsError as error:
                text = f"Session {session.pk} is not run again: {error} {error.fix}".strip()
                self.message_user(request, text, messages.ERROR)
            else:
                link = session_link(made.pk)
                text = format_html("Queued {} like session {}. {}", link, session.pk, made.hold_reason)
                self.message_user(request, text, messages.SUCCESS)

    @admin.action(description="Retry", permissions=["run"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        self._follow(request, queryset, queue.request_retry, "retried")

    @admin.action(description="Continue", permissions=["run"])
    def continue_(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        self._follow(request, queryset, queue.request_continue, "continued")

    def _follow(
        self, request: HttpRequest, queryset: QuerySet[Session], verb: Callable[..., Session], words: str
    ) -> None:
        for session in self._few(request, queryset):
            try:
                made = verb(session, by=request.user.get_username())
            except SessionsError as error:
                text = f"Session {session.pk} is not {words}: {error} {error.fix}".strip()
                self.message_user(request, text, messages.ERROR)
            else:
                text = format_html(
                    "Session {} is {} by {}. {}", session.pk, words, session_link(made.pk), made.hold_reason
                )
                self.message_user(request, text, messages.SUCCESS)

    @admin.action(description="Stop", permissions=["stop"])
    def stop(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        for session in self._few(request, queryset):
            try:
                text = queue.request_stop(session.pk, by=request.user.get_username())
            except SessionsError as error:
                self.message_user(request, f"{error} {error.fix}".strip(), messages.WARNING)
            else:
                self.message_user(request, text, messages.SUCCESS)

    def _few(self, request: HttpRequest, queryset: QuerySet[Session]) -> list[Session]:
        rows = list(queryset.select_related("agent", "project").defer(None)[: MOST_AT_ONCE + 1])
        if len(rows) > MOST_AT_ONCE:
            text = f"At most {MOST_AT_ONCE} sessions at once; choose fewer. Nothing was done."
            self.message_user(request, text, messages.ERROR)
            return []
        return rows
