"""The admin of sessions: what ran, why it ended as it did, and asking for another run or for an end.

A session is a record: it is never added or edited here, and only a superuser may delete an ended one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import path
from django.urls.resolvers import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from memories.adminkit import LeanAdmin, counted
from memories.templatetags.claudeops import NONE, ago, badge, dollars, milliseconds, since
from sessions_app import queue
from sessions_app.admin import filters
from sessions_app.admin.links import cut, session_link, session_url
from sessions_app.errors import SessionsError
from sessions_app.log.entries import following
from sessions_app.models import Event, LogEntry, ServiceCheck, Session, Status
from sessions_app.page import page_of

LOG_LINES = 200
MOST_AT_ONCE = 50
"""Sessions that can be asked for again or stopped at once."""

May = Callable[[HttpRequest], bool]
Verb = Callable[[HttpRequest, Session], Session | None]


def by(request: HttpRequest) -> str:
    return str(request.user.get_username())


def words(error: SessionsError) -> str:
    return f"{error} {error.fix}".strip()


@admin.register(Session)
class SessionAdmin(LeanAdmin):
    change_form_template = "admin/sessions_app/session/change_form.html"
    list_display = ("name", "shown_status", "reason", "tier", "trigger", "cost", "turns", "took", "began")
    list_display_links = ("name",)
    list_filter = (
        filters.StatusFilter,
        filters.AgentFilter,
        filters.TierFilter,
        filters.TriggerFilter,
        filters.QueuedFilter,
        filters.DryRunFilter,
    )
    list_select_related = ("agent",)
    list_defer: ClassVar[tuple[str, ...]] = (
        *("prompt", "injected_text", "response", "structured", "escalation", "usage", "stats", "error", "task"),
        "ingest_state",
    )
    search_fields = ("agent__slug", "summary", "status_reason")
    search_help_text = "A session's number, or words of its agent, its summary and its reason."
    date_hierarchy = "queued_at"
    sortable_by = ("began",)
    actions = ("run_again_action", "stop_action")
    fields = ("status",)

    @admin.display(description="session")
    def name(self, session: Session) -> SafeString:
        agent = session.agent.slug if session.agent else "no agent"
        return format_html('<span class="nowrap">#{} {}</span>', session.pk, agent)

    @admin.display(description="status")
    def shown_status(self, session: Session) -> SafeString:
        shown = badge(session.status, session.get_status_display())
        return format_html("{} {}", shown, badge("dry", "dry run")) if session.dry_run else shown

    @admin.display(description="why, or what came of it")
    def reason(self, session: Session) -> str | SafeString:
        if session.status == Status.RUNNING and session.stop_requested_at:
            return f"told to stop by {session.stop_requested_by}"
        said = {Status.QUEUED.value: session.hold_reason, Status.COMPLETED.value: session.summary}
        return cut(said.get(session.status) or session.status_reason, 140) or NONE

    @admin.display(description="cost")
    def cost(self, session: Session) -> str | SafeString:
        return dollars(session.cost_usd) if session.cost_usd else NONE

    @admin.display(description="turns")
    def turns(self, session: Session) -> int | SafeString:
        return session.num_turns or NONE

    @admin.display(description="took")
    def took(self, session: Session) -> str | SafeString:
        return since(session.started_at) if session.status == Status.RUNNING else milliseconds(session.duration_ms)

    @admin.display(description="started", ordering="queued_at")
    def began(self, session: Session) -> SafeString:
        if session.started_at is None:
            return format_html('{} <span class="quiet">asked</span>', ago(session.queued_at))
        return ago(session.started_at)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Session], search_term: str
    ) -> tuple[QuerySet[Session], bool]:
        """A number is a session's own."""
        number = search_term.strip().lstrip("#")
        if number.isdecimal() and len(number) < 19:
            return queryset.filter(pk=int(number)), False
        return super().get_search_results(request, queryset, search_term)

    # -- who may do what -----------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        user = request.user
        return bool(user.is_active and user.is_superuser and not (isinstance(obj, Session) and obj.is_open))

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Who may ask for sessions."""
        return bool(request.user.has_perm("sessions_app.run_session"))

    def has_stop_permission(self, request: HttpRequest) -> bool:
        """Who may stop them."""
        return bool(request.user.has_perm("sessions_app.stop_session"))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What goes with a session, in numbers: its log alone may have a hundred thousand rows."""
        ids = [obj.pk for obj in objs]
        counts = counted(
            sessions=len(ids),
            log_entries=LogEntry.objects.filter(session__in=ids).count(),
            events=Event.objects.filter(session__in=ids).count(),
            service_checks=ServiceCheck.objects.filter(session__in=ids).count(),
        )
        return [str(obj) for obj in objs], counts, set(), []

    # -- the page ------------------------------------------------------------------------------------------------

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> Any:
        rows = Session.objects.select_related("agent", "project", "parent__agent", "parent__parent__agent")
        session = rows.filter(pk=object_id).first() if object_id.isdecimal() and len(object_id) < 19 else None
        if session is not None and self.has_view_permission(request, session):
            after = request.GET.get("after", "")
            extra_context = {
                **(extra_context or {}),
                **page_of(session),
                "log": following(
                    session.pk, int(after) if after.isdecimal() and len(after) < 10 else 0, most=LOG_LINES
                ),
                "can_run": self.has_run_permission(request),
                "can_stop": self.has_stop_permission(request),
            }
        return super().change_view(request, object_id, form_url, extra_context)

    def get_urls(self) -> list[URLPattern]:
        def of(may: May, verb: Verb) -> Any:
            return self.admin_site.admin_view(require_POST(lambda request, pk: self._operate(request, pk, may, verb)))

        run_again, stop = of(self.has_run_permission, self._run_again), of(self.has_stop_permission, self._stop)
        return [
            path("<int:pk>/run-again", run_again, name="sessions_app_session_run_again"),
            path("<int:pk>/stop", stop, name="sessions_app_session_stop"),
            *super().get_urls(),
        ]

    # -- run again, stop -----------------------------------------------------------------------------------------

    def _operate(self, request: HttpRequest, pk: int, may: May, verb: Verb) -> HttpResponse:
        if not may(request):
            raise PermissionDenied
        session = get_object_or_404(Session.objects.select_related("agent", "project"), pk=pk)
        made = verb(request, session)
        return HttpResponseRedirect(session_url(made.pk if made else pk))

    def _run_again(self, request: HttpRequest, session: Session) -> Session | None:
        try:
            made = queue.request_again(session, by=by(request))
        except SessionsError as error:
            self.message_user(request, f"Session {session.pk} is not run again: {words(error)}", messages.ERROR)
            return None
        waits = f" It waits: {made.hold_reason}" if made.hold_reason else ""
        text = format_html("Asked for {}, as session {} was.{}", session_link(made.pk), session.pk, waits)
        self.message_user(request, text, messages.SUCCESS)
        return made

    def _stop(self, request: HttpRequest, session: Session) -> None:
        try:
            self.message_user(request, queue.request_stop(session.pk, by=by(request)), messages.SUCCESS)
        except SessionsError as error:
            self.message_user(request, words(error), messages.WARNING)

    @admin.action(description="Run again", permissions=["run"])
    def run_again_action(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        for session in self._few(request, queryset):
            self._run_again(request, session)

    @admin.action(description="Stop", permissions=["stop"])
    def stop_action(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        for session in self._few(request, queryset):
            self._stop(request, session)

    def _few(self, request: HttpRequest, queryset: QuerySet[Session]) -> list[Session]:
        rows = list(queryset.select_related("agent", "project").defer(None)[: MOST_AT_ONCE + 1])
        if len(rows) > MOST_AT_ONCE:
            text = f"At most {MOST_AT_ONCE} sessions at once; choose fewer. Nothing was done."
            self.message_user(request, text, messages.ERROR)
            return []
        return rows
