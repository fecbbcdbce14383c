"""The admin of sessions: the list, queueing one with a brief, following or stopping some.

Only a superuser may delete an ended one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter, value_filter
from claudeops.lib.masked import masked_note
from memories.templatetags.claudeops import milliseconds, session_link
from sessions_app import queue
from sessions_app.errors import SessionsError
from sessions_app.models import Event, LogEntry, ServiceCheck, Session, Trigger
from sessions_app.web.forms import NoteForm, RunForm
from sessions_app.web.sessions import HAND_OVER, said_of

MOST_AT_ONCE = 50
"""Most sessions that can be run again or stopped at once."""


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = (
        *("id", "agent", "status", "status_reason", "tier", "trigger", "cost_usd", "num_turns", "queued_at"),
    )
    list_filter = (*("status", "agent", value_filter("tier"), "trigger", "dry_run"), age_filter("queued_at", "queued"))
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

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow to request a session: the right of the dashboard's form, since no row is written by itself."""
        return request.user.has_perms(("sessions_app.view_session", "sessions_app.run_session"))

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Queue a session from the dashboard's form."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = RunForm(request.POST if request.method == "POST" else None)
        if form.is_valid() and (session := self._requested(request, form)):
            self.message_user(request, said_of(session)[1], said_of(session)[0])
            if note := masked_note(form.cleaned_data["prompt"]):
                self.message_user(request, f"{note.strip()} {HAND_OVER}", messages.WARNING)
            return HttpResponseRedirect(reverse("admin:sessions_app_session_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": "Queue a session",
            "opts": self.opts,
            "has_view_permission": True,
            "add": True,
            "form": form,
        }
        template = "admin/sessions_app/session/add_form.html"
        return TemplateResponse(request, template, context, status=422 if form.errors else 200)

    def _requested(self, request: HttpRequest, form: RunForm) -> Session | None:
        """Request the session of a valid form; None when it is refused, and the form says at which field."""
        try:
            return queue.request_session(trigger=Trigger.MANUAL, by=request.user.get_username(), **form.asked())
        except SessionsError as error:
            named = next((name for name in error.fields if name in form.fields), None)
            form.add_error(named, f"{error} {error.fix}".strip())
            return None

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
        def again(session: Session) -> str:
            successor = queue.request_again(session, by=request.user.get_username())
            return format_html(
                "Queued {} like session {}. {}", session_link(successor.pk), session.pk, successor.hold_reason
            )

        self.do_each(request, self._few(request, queryset), again, "Session {0.pk} is not run again:")

    @admin.action(description="Retry", permissions=["run"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Session]) -> HttpResponse | None:
        return self._follow(request, queryset, queue.request_retry, queue.may_not_follow, "Retry", "retried")

    @admin.action(description="Continue", permissions=["run"])
    def continue_(self, request: HttpRequest, queryset: QuerySet[Session]) -> HttpResponse | None:
        return self._follow(request, queryset, queue.request_continue, queue.may_not_continue, "Continue", "continued")

    def _follow(
        self,
        request: HttpRequest,
        queryset: QuerySet[Session],
        verb: Callable[..., Session],
        refusal: Callable[[Session], str],
        label: str,
        words: str,
    ) -> HttpResponse | None:
        """Ask for the operator's words on a page between, then follow each session with them."""
        rows = self._few(request, queryset)
        form = NoteForm(request.POST if "noted" in request.POST else None)
        if rows and not form.is_valid():
            context = {
                **self.admin_site.each_context(request),
                "title": f"{label} {len(rows)} session{'' if len(rows) == 1 else 's'}",
                "opts": self.opts,
                "label": label,
                "action": request.POST["action"],
                "sessions": [(session, refusal(session)) for session in rows],
                "form": form,
            }
            template = "admin/sessions_app/session/follow.html"
            return TemplateResponse(request, template, context, status=422 if form.errors else 200)

        def followed(session: Session) -> str:
            successor = verb(session, by=request.user.get_username(), note=form.cleaned_data["note"])
            link = session_link(successor.pk)
            return format_html("Session {} is {} by {}. {}", session.pk, words, link, successor.hold_reason)

        self.do_each(request, rows, followed, f"Session {{0.pk}} is not {words}:")
        return None

    @admin.action(description="Stop", permissions=["stop"])
    def stop(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        def stopped(session: Session) -> str:
            return queue.request_stop(session.pk, by=request.user.get_username())

        self.do_each(request, self._few(request, queryset), stopped, "", messages.WARNING)

    def _few(self, request: HttpRequest, queryset: QuerySet[Session]) -> list[Session]:
        rows = list(queryset.select_related("agent", "project").defer(None)[: MOST_AT_ONCE + 1])
        if len(rows) > MOST_AT_ONCE:
            text = f"At most {MOST_AT_ONCE} sessions at once; choose fewer. Nothing was done."
            self.message_user(request, text, messages.ERROR)
            return []
        return rows
