"""`manage.py session`: run, compose, retry and continue a session, import logs, list, show, stop, reap."""

from __future__ import annotations

import signal
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import OutputWrapper
from django.utils import timezone

from claudeops.lib import times
from claudeops.lib.cli import (
    Columns,
    Refusal,
    Result,
    VerbCommand,
    arg,
    columns,
    current_user,
    listing,
    text_or_stdin,
    verb,
)
from claudeops.lib.humanize import quantity
from memories.lifecycle.projects import find_project
from memories.models import Project
from sessions_app import queue, reaper
from sessions_app.api.serializers import as_data, as_row
from sessions_app.errors import SessionNotFound, SessionsError
from sessions_app.management.session_text import as_text, closing_text, entry_text, short
from sessions_app.models import Agent, LogEntry, Runner, Session, Status, Trigger
from sessions_app.prompts.brief import checked
from sessions_app.runner.accept import storable
from sessions_app.runner.importer import ImportedFile, import_log
from sessions_app.runner.launch import handoff_file
from sessions_app.runner.projection import Entry
from sessions_app.runner.prompt import draft, selected_for
from sessions_app.runner.run import run_session

GOOD = (Status.COMPLETED, Status.ESCALATED)
MOST_LISTED = 1000


def _moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not an ISO 8601 time, such as 2026-05-01T12:00:00Z") from None
    if at.tzinfo is None:
        raise ArgumentTypeError(f"{text!r} has no time zone; give for example 2026-05-01T12:00:00Z")
    happened = times.happened(at, timezone.now())
    if happened is None:
        raise ArgumentTypeError(f"{text!r} is in the future, or before {times.EARLIEST:%Y}")
    return happened


SESSION = arg("the session's number", metavar="ID")
PROJECT = arg("a project's slug (default: the agent's)", metavar="SLUG", read=find_project)
NOTE = arg("your words for the new session; - reads them from stdin", default="", read=text_or_stdin)


@dataclass(frozen=True)
class Brief:
    task_id: str = arg("the task's id elsewhere, such as SHOP-42", default="")
    title: str = arg("the task in a few words", default="")
    write_scope: Sequence[str] = arg("a glob of files that it may change; may be given more than once")
    exclude: Sequence[str] = arg("a glob of files that it leaves alone; may be given more than once")
    read_first: Sequence[str] = arg("a file that it reads first; may be given more than once")
    prohibit: Sequence[str] = arg("what it does not do; may be given more than once")

    def given(self) -> dict[str, Any]:
        """Return the parts of the brief that were given, by their names in `prompts.brief`."""
        names = {"exclude": "excluded_paths", "prohibit": "prohibited"}
        return {names.get(name, name): value for name, value in vars(self).items() if value}


class Command(VerbCommand):
    help = "Sessions: runs of agents."

    @verb
    def run_(
        self,
        *,
        agent: str | None = arg("an agent's slug; without one, the session runs with the settings of its tier"),
        tier: int | None = arg("default: the agent's, or 1", choices=(1, 2, 3)),
        project: Project | None = PROJECT,
        prompt: str = arg("the task; - reads it from stdin", default=""),
        alert: str = arg("the text of an alert; - reads it from stdin", default=""),
        brief: Brief,
        model: str | None = arg("default: the agent's, or the tier's"),
        runner: str | None = arg("default: the agent's, or claude", choices=Runner.values),
        stream: str = arg("a recorded stream to play; implies --runner replay", default=""),
        dry_run: bool = arg("read-only tools, and no escalation"),
        queue_: bool = arg("leave the session to the workers instead of running it here"),
    ) -> Result:
        """Run a session here and print its log as it grows."""
        if prompt and alert:
            raise Refusal("usage", "--prompt and --alert exclude each other.", "Give one of them.")
        played = str(Path(stream).expanduser().resolve()) if stream else ""
        session = queue.request_session(
            agent=Agent.objects.named(agent) if agent is not None else None,
            trigger=Trigger.ALERT if alert else Trigger.MANUAL,
            by=current_user(),
            tier=tier,
            prompt_task=text_or_stdin(prompt or alert),
            project=project,
            runner=Runner.REPLAY if played and not runner else runner,
            model=model,
            stream=played,
            dry_run=dry_run or None,
            brief=brief.given(),
            wake=queue_,
        )
        if queue_:
            return _queued(session, "queued")
        out = self.stderr if self.as_json else self.stdout
        with _interrupts() as signals:
            _run_until_ended(session.pk, out, signals)
        session.refresh_from_db()
        good = session.status in GOOD
        actions = {f"manage.py session show {session.pk}": "see what it found and which memories it received"}
        return Result(as_data(session), closing_text(session), actions, exit_code=0 if good else 1)

    @verb
    def compose(
        self,
        *,
        agent: str | None = arg("an agent's slug; without one, the tier's own prompt"),
        tier: int | None = arg("default: the agent's, or 1", choices=(1, 2, 3)),
        project: Project | None = PROJECT,
        task: str = arg("the task's description; - reads it from stdin", default="", read=text_or_stdin),
        brief: Brief,
    ) -> Result:
        """Print the prompt of a task without running it."""
        session = draft(agent, project, tier, task)
        session.brief, session.dry_run = checked(brief.given()).as_record(), settings.CLAUDEOPS_DRY_RUN
        at = timezone.now()
        selected = selected_for(session, at=at)
        composed = selected.composed(session, handoff_file=str(handoff_file(session)), at=at)
        data = {
            "prompt": composed.text,
            "sha256": composed.sha256,
            "sections": [{"title": title, "text": text} for title, text in composed.sections],
            "receipt": selected.record,
            "injected_text": selected.ops.text,
        }
        return Result(data, composed.text.rstrip("\n"))

    @verb
    def retry(self, session_id: int = SESSION, *, note: str = NOTE) -> Result:
        """Try again what an ended session was asked to do."""
        session = queue.request_retry(_session(session_id), by=current_user(), note=note)
        return _queued(session, f"queued, a {session.get_follows_as_display()} of session {session_id}")

    @verb
    def continue_(self, session_id: int = SESSION, *, note: str = NOTE) -> Result:
        """Resume the conversation of an ended session."""
        session = queue.request_continue(_session(session_id), by=current_user(), note=note)
        return _queued(session, f"queued, a {session.get_follows_as_display()} of session {session_id}")

    @verb
    def import_(
        self,
        files: Sequence[str] = arg("logs of the Claude Code CLI, in any known format", metavar="FILE"),
        *,
        tier: int = arg("the tier at which they ran (default: 1)", choices=(1, 2, 3), default=1),
        project: Project | None = arg("a project's slug", metavar="SLUG", read=find_project),
        at: datetime | None = arg(
            "when lines without a time stamp were written: ISO 8601 with a time zone, such as 2026-05-01T12:00:00Z "
            "(default: the file's modification time)",
            metavar="WHEN",
            type=_moment,
        ),
        force: bool = arg("import a file of which most lines are not those of a log"),
    ) -> Result:
        """Import logs from elsewhere; importing a log twice changes nothing."""
        by = current_user()
        imports: list[dict[str, Any]] = []
        failed: list[dict[str, Any]] = []
        for path in files:
            name = storable(path)  # a file's name may hold bytes that are no text
            try:
                file = import_log(Path(path).expanduser(), by=by, tier=tier, project=project, at=at, force=force)
                imports += _imported(name, file)
                refused = file.refused
            except SessionsError as error:
                refused = [error]
            failed += [{"file": name, "code": one.code, "error": str(one), "fix": one.fix} for one in refused]
        for item in failed:
            self.stderr.write(f"Error: {item['error']} {item['fix']}")
        refusal = None
        if failed and not imports:
            why = "No file was imported: " + " ".join(item["error"] for item in failed)
            refusal = (failed[0]["code"], why, failed[0]["fix"])
        lines = "\n".join(_import_line(item) for item in imports)
        return Result({"imported": imports, "failed": failed}, lines, exit_code=1 if failed else 0, error=refusal)

    @verb
    def list_(
        self,
        *,
        status: str | None = arg(choices=Status.values),
        agent: str | None = arg("an agent's slug"),
        trigger: str | None = arg(choices=Trigger.values),
        limit: int = arg(
            f"how many, newest first (1 to {MOST_LISTED}, default: 20)", default=20, within=(1, MOST_LISTED)
        ),
    ) -> Result:
        """List the latest sessions."""
        filters = {"status": status, "trigger": trigger, "agent": Agent.objects.named(agent) if agent else None}
        chosen = Session.objects.filter(**{name: value for name, value in filters.items() if value})
        sessions = list(chosen.select_related("agent").order_by("-queued_at", "-id")[:limit])
        cells: Columns = {
            "id": "pk",
            "queued (UTC)": lambda one: f"{one.queued_at:%m-%d %H:%M}",
            "agent": lambda one: one.agent.slug if one.agent else "",
            "tier": "tier",
            "trigger": "trigger",
            "status": "status",
            "cost": lambda one: f"{'~' if one.cost_is_estimated else ''}${one.cost_usd:.2f}",
            "turns": "num_turns",
            "result": lambda one: short(one.ended_with, 70),
        }
        empty = "There is no session yet. Run one: manage.py session run --prompt 'Check the services.'"
        text = listing(sessions, cells, empty)
        return Result([as_row(session) for session in sessions], text)

    @verb
    def show(
        self,
        session_id: int = SESSION,
        *,
        log: bool = arg("show the log too"),
        prompt: bool = arg("show the prompt and the injected text too"),
    ) -> Result:
        """Show one session."""
        session = _session(session_id)
        data = as_data(session)
        parts = [as_text(session)]
        if prompt:
            data |= columns(session, "prompt", "injected_text")
            parts += ["\n--- appended to the system prompt ---", session.injected_text]
            parts += ["\n--- prompt ---", session.prompt]
        if log:
            entries = list(LogEntry.objects.filter(session=session).order_by("seq"))
            data["log"] = [columns(entry, "seq", "at", "kind", "text") for entry in entries]
            parts += ["\n--- log ---", *(entry_text(e.kind, e.text) for e in entries)]
        return Result(data, "\n".join(parts))

    @verb
    def stop(self, session_id: int = SESSION) -> Result:
        """Stop a queued or running session."""
        _session(session_id)
        words = queue.request_stop(session_id, by=current_user())
        return Result({"session": session_id, "done": words}, words)

    @verb
    def reap(self) -> Result:
        """Reap running sessions that lost their worker (the workers do this every minute)."""
        result = reaper.reap()
        data = columns(result, "followed", "closed", "requeued", "lost", "failed", "ended")
        lines = [f"{name}: {', '.join(map(str, ids))}" for name, ids in data.items() if ids]
        text = "\n".join(lines) or "Every running session has a worker."
        return Result(data, text, exit_code=1 if result.failed else 0)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM, which ask for a stop of the session."""
    signals: list[int] = []
    before = {}
    with suppress(ValueError):  # not in the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, lambda number, frame: signals.append(number))
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run_until_ended(session_id: int, out: OutputWrapper, signals: list[int]) -> None:
    """Run the session here; while it has to wait, print the reason once and try again every second."""

    def print_entries(entries: Sequence[Entry]) -> None:
        for entry in entries:
            out.write(entry_text(entry.kind, entry.text))
        out.flush()

    def stop_wanted() -> str:
        return current_user() if signals else ""

    printed_reason = ""
    while True:
        if run_session(session_id, on_entries=print_entries, stop_wanted=stop_wanted):
            return
        session = Session.objects.get(pk=session_id)
        if session.status not in (Status.QUEUED, Status.RUNNING):
            return
        if signals:
            if session.status == Status.QUEUED:
                queue.request_stop(session_id, by=current_user())
                return
            raise Refusal(
                "interrupted",
                f"Another worker runs session {session_id}.",
                f"`manage.py session stop {session_id}` stops it.",
            )
        if session.status == Status.QUEUED and session.hold_reason and session.hold_reason != printed_reason:
            printed_reason = session.hold_reason
            out.write(f"Session {session_id} has to wait: {printed_reason}")
            out.flush()
        time.sleep(1)


def _queued(session: Session, words: str) -> Result:
    waits = f" It has to wait: {session.hold_reason}" if session.hold_reason else ""
    see = {f"manage.py session show {session.pk}": "see its result"}
    return Result(as_row(session), f"Session {session.pk} is {words}.{waits}", see)


def _session(pk: int) -> Session:
    session = Session.objects.select_related("agent", "parent").filter(pk=pk).first()
    if session is None:
        raise SessionNotFound(f"There is no session {pk}.", "`manage.py session list` shows the latest.")
    return session


def _imported(name: str, file: ImportedFile) -> list[dict[str, Any]]:
    """Describe each session of an imported file."""
    rows = Session.objects.only("status", "stats").in_bulk([one.session_id for one in file.sessions])
    return [
        {
            "file": name,
            "format": " and ".join(file.formats),
            "dated_by": file.dated_by,
            "lines_of_file": file.lines,
            "lines_not_understood": file.lines - file.understood,
            "last_line_cut_off": file.cut,
            "session": one.session_id,
            "outcome": one.outcome,
            "lines": one.lines,
            "rewritten": one.rewritten,
            "status": rows[one.session_id].status,
            "stats": rows[one.session_id].stats,
        }
        for one in file.sessions
    ]


def _import_line(item: dict[str, Any]) -> str:
    lines = quantity(item["lines"], "line")
    words = {
        "imported": f"imported as session {item['session']} ({lines}, {item['status']})",
        "continued": f"continued session {item['session']} ({lines} more, {item['status']})",
        "unchanged": f"already imported as session {item['session']}; nothing changed",
        "own": f"is session {item['session']}, which ran here; nothing changed",
    }[item["outcome"]]
    remarks = [f"{item['format']}, dated by {item['dated_by']}"]
    if item["lines_not_understood"]:
        share = item["lines_not_understood"] / item["lines_of_file"]
        remarks.append(
            f"{item['lines_not_understood']:,} of {item['lines_of_file']:,} lines ({share:.1%}) not understood"
        )
    if item["last_line_cut_off"]:
        remarks.append("its incomplete last line was left out")
    if item["rewritten"]:
        remarks.append(
            "its beginning differs from the copy imported before: its new lines were added, nothing stored was removed"
        )
    return f"{item['file']}: {words}; {'; '.join(remarks)}"
