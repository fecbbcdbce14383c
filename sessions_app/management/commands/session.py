"""`manage.py session`: run, compose, retry and continue a session, import logs, list, show, stop, reap."""

from __future__ import annotations

import signal
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import OutputWrapper
from django.utils import timezone

from claudeops.lib import times
from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user, table
from claudeops.lib.secrets import mask
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
from sessions_app.runner.prompt import selected_for
from sessions_app.runner.run import run_session

GOOD = (Status.COMPLETED, Status.ESCALATED)
MOST_LISTED = 1000


def _run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--agent", help="an agent's slug; without one, the session runs with the settings of its tier")
    parser.add_argument("--tier", type=int, choices=(1, 2, 3), help="default: the agent's, or 1")
    parser.add_argument("--project", help="a project's slug (default: the agent's)")
    parser.add_argument("--prompt", default="", help="the task; - reads it from stdin")
    parser.add_argument("--alert", default="", help="the text of an alert; - reads it from stdin")
    _brief_arguments(parser)
    parser.add_argument("--model", help="default: the agent's, or the tier's")
    parser.add_argument("--runner", choices=Runner.values, help="default: the agent's, or claude")
    parser.add_argument("--stream", default="", help="a recorded stream to play; implies --runner replay")
    parser.add_argument("--dry-run", action="store_true", help="read-only tools, and no escalation")
    parser.add_argument(
        "--queue", action="store_true", help="leave the session to the workers instead of running it here"
    )


def _import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="logs of the Claude Code CLI, in any known format")
    parser.add_argument(
        "--tier", type=int, choices=(1, 2, 3), default=1, help="the tier at which they ran (default: 1)"
    )
    parser.add_argument("--project", help="a project's slug")
    parser.add_argument(
        "--at",
        metavar="WHEN",
        type=_moment,
        help="when lines without a time stamp were written: ISO 8601 with a time zone, such as 2026-05-01T12:00:00Z "
        "(default: the file's modification time)",
    )
    parser.add_argument("--force", action="store_true", help="import a file of which most lines are not those of a log")


def _moment(given: str) -> datetime:
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise ArgumentTypeError(f"{given!r} is not an ISO 8601 time, such as 2026-05-01T12:00:00Z") from None
    if at.tzinfo is None:
        raise ArgumentTypeError(f"{given!r} has no time zone; give for example 2026-05-01T12:00:00Z")
    happened = times.happened(at, timezone.now())
    if happened is None:
        raise ArgumentTypeError(f"{given!r} is in the future, or before {times.EARLIEST:%Y}")
    return happened


def _list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--status", choices=Status.values)
    parser.add_argument("--agent", help="an agent's slug")
    parser.add_argument("--trigger", choices=Trigger.values)
    parser.add_argument(
        "--limit", type=int, default=20, help=f"how many, newest first (1 to {MOST_LISTED}, default: 20)"
    )


def _id(parser: ArgumentParser) -> None:
    parser.add_argument("session_id", metavar="ID", type=int, help="the session's number")


def _brief_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--task-id", default="", help="the task's id elsewhere, such as SHOP-42")
    parser.add_argument("--title", default="", help="the task in a few words")
    for option, words in (
        ("--write-scope", "a glob of files that it may change; may be given more than once"),
        ("--exclude", "a glob of files that it leaves alone; may be given more than once"),
        ("--read-first", "a file that it reads first; may be given more than once"),
        ("--prohibit", "what it does not do; may be given more than once"),
    ):
        parser.add_argument(option, action="append", default=[], help=words)


def _compose_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--agent", help="an agent's slug; without one, the tier's own prompt")
    parser.add_argument("--tier", type=int, choices=(1, 2, 3), help="default: the agent's, or 1")
    parser.add_argument("--project", help="a project's slug (default: the agent's)")
    parser.add_argument("--task", default="", help="the task's description; - reads it from stdin")
    _brief_arguments(parser)


def _follow_arguments(parser: ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("--note", default="", help="your words for the new session; - reads them from stdin")


def _show_arguments(parser: ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("--log", action="store_true", help="show the log too")
    parser.add_argument("--prompt", action="store_true", help="show the prompt and the injected text too")


class Command(VerbCommand):
    help = "Sessions: runs of agents."
    noun = "session"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "run": Verb("Run a session here and print its log as it grows.", self.run_here, _run_arguments),
            "compose": Verb("Print the prompt of a task without running it.", self.compose, _compose_arguments),
            "retry": Verb("Try again what an ended session was asked to do.", self.retry, _follow_arguments),
            "continue": Verb("Resume the conversation of an ended session.", self.continue_, _follow_arguments),
            "import": Verb(
                "Import logs from elsewhere; importing a log twice changes nothing.", self.import_, _import_arguments
            ),
            "list": Verb("List the latest sessions.", self.list, _list_arguments),
            "show": Verb("Show one session.", self.show, _show_arguments),
            "stop": Verb("Stop a queued or running session.", self.stop, _id),
            "reap": Verb("Reap running sessions that lost their worker (the workers do this every minute).", self.reap),
        }
        self.as_json = False

    def handle(self, *args: Any, **options: Any) -> str | None:
        self.as_json = options.get("json", False)
        return super().handle(*args, **options)

    def run_here(self, *, agent: str | None, project: str | None, prompt: str, alert: str, **options: Any) -> Result:
        if prompt and alert:
            raise Refusal("usage", "--prompt and --alert exclude each other.", "Give one of them.")
        task = _text_or_stdin(prompt or alert)
        runner = options["runner"]
        stream = str(Path(options["stream"]).expanduser().resolve()) if options["stream"] else ""
        session = queue.request_session(
            agent=Agent.objects.named(agent) if agent is not None else None,
            trigger=Trigger.ALERT if alert else Trigger.MANUAL,
            by=current_user(),
            tier=options["tier"],
            prompt_task=task,
            project=_project(project),
            runner=Runner.REPLAY if stream and not runner else runner,
            model=options["model"],
            stream=stream,
            dry_run=options["dry_run"] or None,
            brief=_brief(options),
            wake=options["queue"],
        )
        if options["queue"]:
            waits = f" It has to wait: {session.hold_reason}" if session.hold_reason else ""
            text = f"Session {session.pk} is queued.{waits}"
            return Result(as_row(session), text, [NextAction(f"manage.py session show {session.pk}", "see its result")])
        out = self.stderr if self.as_json else self.stdout
        with _Interrupt() as interrupt:
            self._until_ended(session.pk, out, interrupt)
        session.refresh_from_db()
        good = session.status in GOOD
        actions = [
            NextAction(f"manage.py session show {session.pk}", "see what it found and which memories it received")
        ]
        return Result(as_data(session), closing_text(session), actions, exit_code=0 if good else 1)

    def compose(self, *, agent: str | None, project: str | None, task: str, **options: Any) -> Result:
        by = Agent.objects.named(agent) if agent is not None else None
        session = Session(
            agent=by,
            project=_project(project) or (by.project if by else None),
            tier=options["tier"] or (by.tier if by else 1),
            task=mask(_text_or_stdin(task)),
            brief=checked(_brief(options)).as_record(),
            dry_run=settings.CLAUDEOPS_DRY_RUN,
        )
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

    def retry(self, *, session_id: int, note: str) -> Result:
        made = queue.request_retry(_session(session_id), by=current_user(), note=_text_or_stdin(note))
        return _followed(made, session_id)

    def continue_(self, *, session_id: int, note: str) -> Result:
        made = queue.request_continue(_session(session_id), by=current_user(), note=_text_or_stdin(note))
        return _followed(made, session_id)

    def _until_ended(self, session_id: int, out: OutputWrapper, interrupt: _Interrupt) -> None:
        """Run the session here; while it has to wait, print the reason once and try again every second."""

        def print_entries(entries: Sequence[Entry]) -> None:
            for entry in entries:
                out.write(entry_text(entry.kind, entry.text))
            out.flush()

        printed_reason = ""
        while True:
            if run_session(session_id, on_entries=print_entries, stop_wanted=interrupt.stop_wanted):
                return
            session = Session.objects.get(pk=session_id)
            if session.status not in (Status.QUEUED, Status.RUNNING):
                return
            if interrupt.asked:
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

    def import_(
        self, *, files: Sequence[str], tier: int, project: str | None, at: datetime | None, force: bool
    ) -> Result:
        chosen, by = _project(project), current_user()
        done: list[dict[str, Any]] = []
        failed: list[dict[str, Any]] = []
        for given in files:
            name = storable(given)  # a file's name may hold bytes that are no text
            try:
                file = import_log(Path(given).expanduser(), by=by, tier=tier, project=chosen, at=at, force=force)
            except SessionsError as error:
                failed.append({"file": name, "code": error.code, "error": str(error), "fix": error.fix})
                continue
            done += _imported(name, file)
            failed += [
                {"file": name, "code": error.code, "error": str(error), "fix": error.fix} for error in file.refused
            ]
        for item in failed:
            self.stderr.write(f"Error: {item['error']} {item['fix']}")
        refusal = None
        if failed and not done:
            why = "No file was imported: " + " ".join(item["error"] for item in failed)
            refusal = (failed[0]["code"], why, failed[0]["fix"])
        lines = "\n".join(_import_line(item) for item in done)
        return Result({"imported": done, "failed": failed}, lines, exit_code=1 if failed else 0, error=refusal)

    def list(self, *, status: str | None, agent: str | None, trigger: str | None, limit: int) -> Result:
        if not 1 <= limit <= MOST_LISTED:
            raise Refusal("usage", f"--limit is {limit}; allowed is 1 to {MOST_LISTED}.")
        rows = Session.objects.select_related("agent").order_by("-queued_at", "-id")
        if status:
            rows = rows.filter(status=status)
        if trigger:
            rows = rows.filter(trigger=trigger)
        if agent:
            rows = rows.filter(agent=Agent.objects.named(agent))
        sessions = list(rows[:limit])
        text = (
            table(
                ["id", "queued (UTC)", "agent", "tier", "trigger", "status", "cost", "turns", "result"],
                [
                    [
                        s.pk,
                        f"{s.queued_at:%m-%d %H:%M}",
                        s.agent.slug if s.agent else "",
                        s.tier,
                        s.trigger,
                        s.status,
                        f"{'~' if s.cost_is_estimated else ''}${s.cost_usd:.2f}",
                        s.num_turns,
                        short(s.ended_with, 70),
                    ]
                    for s in sessions
                ],
            )
            if sessions
            else "There is no session yet. Run one: manage.py session run --prompt 'Check the services.'"
        )
        return Result([as_row(session) for session in sessions], text)

    def show(self, *, session_id: int, log: bool, prompt: bool) -> Result:
        session = _session(session_id)
        data = as_data(session)
        parts = [as_text(session)]
        if prompt:
            data |= {"prompt": session.prompt, "injected_text": session.injected_text}
            parts += [
                "\n--- appended to the system prompt ---",
                session.injected_text,
                "\n--- prompt ---",
                session.prompt,
            ]
        if log:
            entries = list(LogEntry.objects.filter(session=session).order_by("seq"))
            data["log"] = [{"seq": e.seq, "at": e.at, "kind": e.kind, "text": e.text} for e in entries]
            parts += ["\n--- log ---", *(entry_text(e.kind, e.text) for e in entries)]
        return Result(data, "\n".join(parts))

    def stop(self, *, session_id: int) -> Result:
        _session(session_id)
        words = queue.request_stop(session_id, by=current_user())
        return Result({"session": session_id, "done": words}, words)

    def reap(self) -> Result:
        done = reaper.reap()
        data = {name: getattr(done, name) for name in ("followed", "closed", "requeued", "lost", "failed", "ended")}
        lines = [f"{name}: {', '.join(map(str, ids))}" for name, ids in data.items() if ids]
        return Result(
            data, "\n".join(lines) or "Every running session has a worker.", exit_code=1 if done.failed else 0
        )


class _Interrupt:
    """Turn Ctrl-C and SIGTERM into a stop of the session."""

    def __init__(self) -> None:
        self.asked = False
        self.before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.before[number] = signal.signal(number, self._ask)
            except ValueError:  # not in the main thread
                break
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

    def stop_wanted(self) -> str:
        return current_user() if self.asked else ""


def _brief(options: dict[str, Any]) -> dict[str, Any]:
    given = {
        "task_id": options["task_id"],
        "title": options["title"],
        "write_scope": options["write_scope"],
        "excluded_paths": options["exclude"],
        "read_first": options["read_first"],
        "prohibited": options["prohibit"],
    }
    return {name: value for name, value in given.items() if value}


def _followed(made: Session, old: int) -> Result:
    waits = f" It has to wait: {made.hold_reason}" if made.hold_reason else ""
    text = f"Session {made.pk} is queued, a {made.get_follows_as_display()} of session {old}.{waits}"
    return Result(as_row(made), text, [NextAction(f"manage.py session show {made.pk}", "see its result")])


def _project(slug: str | None) -> Project | None:
    return None if slug is None else find_project(slug)


def _session(pk: int) -> Session:
    found = Session.objects.select_related("agent", "parent").filter(pk=pk).first()
    if found is None:
        raise SessionNotFound(f"There is no session {pk}.", "`manage.py session list` shows the latest.")
    return found


def _text_or_stdin(given: str) -> str:
    return sys.stdin.read() if given == "-" else given


def _imported(name: str, file: ImportedFile) -> list[dict[str, Any]]:
    """Describe each session of an imported file."""
    statuses = dict(
        Session.objects.filter(pk__in=[one.session_id for one in file.sessions]).values_list("pk", "status")
    )
    stats = dict(Session.objects.filter(pk__in=list(statuses)).values_list("pk", "stats"))
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
            "status": statuses[one.session_id],
            "stats": stats[one.session_id],
        }
        for one in file.sessions
    ]


def _import_line(item: dict[str, Any]) -> str:
    number = item["lines"]
    lines = f"{number:,} line{'' if number == 1 else 's'}"
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
