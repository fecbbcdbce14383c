"""`manage.py session`: run one and watch it, import logs, look at what ran, stop, reap."""

from __future__ import annotations

import getpass
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from django.core.management.base import OutputWrapper

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, table
from memories.models import Project
from sessions_app import queue, reaper
from sessions_app.api.serializers import as_data, as_row
from sessions_app.errors import AgentNotFound, SessionNotFound, SessionsError
from sessions_app.management.session_text import as_text, came_of, closing_text, entry_text, short
from sessions_app.models import Agent, LogEntry, Runner, Session, Status, Trigger
from sessions_app.runner.importer import import_log
from sessions_app.runner.projection import Entry
from sessions_app.runner.run import run_session

GOOD = (Status.COMPLETED, Status.ESCALATED)
MOST_LISTED = 1000


def _run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--agent", help="the agent's slug; without one the session has the tier's own profile")
    parser.add_argument("--tier", type=int, choices=(1, 2, 3), help="default: the agent's, or 1")
    parser.add_argument("--project", help="a project's slug")
    parser.add_argument("--prompt", default="", help="what to do, put under '## The task'; - reads it from stdin")
    parser.add_argument("--alert", default="", help="the text of an alert, put under '## The alert'; - reads stdin")
    parser.add_argument("--model", help="default: the agent's, or the tier's")
    parser.add_argument("--runner", choices=Runner.values, help="default: the agent's, or claude")
    parser.add_argument("--stream", default="", help="a recorded stream to play (means --runner replay)")
    parser.add_argument("--dry-run", action="store_true", help="look only, change nothing, start no escalation")
    parser.add_argument("--queue", action="store_true", help="leave it to the workers instead of running it here")


def _import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="logs of the CLI, of any known shape")
    parser.add_argument("--tier", type=int, choices=(1, 2, 3), default=1, help="the tier they ran at (default 1)")
    parser.add_argument("--project", help="a project's slug")


def _list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--status", choices=Status.values)
    parser.add_argument("--agent", help="an agent's slug")
    parser.add_argument("--trigger", choices=Trigger.values)
    parser.add_argument("--limit", type=int, default=20, help=f"how many, newest first (1 to {MOST_LISTED})")


def _id(parser: ArgumentParser) -> None:
    parser.add_argument("session_id", metavar="ID", type=int, help="the session's number")


def _show_arguments(parser: ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("--log", action="store_true", help="the readable log too")
    parser.add_argument("--prompt", action="store_true", help="the prompt and what was injected too")


class Command(VerbCommand):
    help = "Sessions: runs of agents."
    noun = "session"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "run": Verb("Run a session here and show its log as it grows.", self.run_here, _run_arguments),
            "import": Verb(
                "Import logs from elsewhere; the same one twice changes nothing.", self.import_, _import_arguments
            ),
            "list": Verb("The latest sessions.", self.list, _list_arguments),
            "show": Verb("One session.", self.show, _show_arguments),
            "stop": Verb("End a queued or running session.", self.stop, _id),
            "reap": Verb("Look after running sessions that nobody follows (workers do it every minute).", self.reap),
        }
        self.as_json = False

    def handle(self, *args: Any, **options: Any) -> str | None:
        self.as_json = options.get("json", False)
        return super().handle(*args, **options)

    def run_here(self, *, agent: str | None, project: str | None, prompt: str, alert: str, **options: Any) -> Result:
        if prompt and alert:
            raise Refusal("usage", "--prompt and --alert exclude each other.", "Give one of them.")
        task = _text(prompt or alert)
        runner = options["runner"]
        stream = str(Path(options["stream"]).expanduser().resolve()) if options["stream"] else ""
        session = queue.request_session(
            agent=_agent(agent),
            trigger=Trigger.ALERT if alert else Trigger.MANUAL,
            by=_who(),
            tier=options["tier"],
            prompt_task=task,
            project=_project(project),
            runner=Runner.REPLAY if stream and not runner else runner,
            model=options["model"],
            stream=stream,
            dry_run=options["dry_run"] or None,
            wake=options["queue"],
        )
        if options["queue"]:
            waits = f" It waits: {session.hold_reason}" if session.hold_reason else ""
            text = f"Session {session.pk} is queued.{waits}"
            return Result(
                as_row(session), text, [NextAction(f"manage.py session show {session.pk}", "see how it went")]
            )
        out = self.stderr if self.as_json else self.stdout
        with _Interrupt() as interrupt:
            self._until_ended(session.pk, out, interrupt)
        session.refresh_from_db()
        good = session.status in GOOD
        actions = [NextAction(f"manage.py session show {session.pk}", "see what it found and what it was told")]
        return Result(as_data(session), closing_text(session), actions, exit_code=0 if good else 1)

    def _until_ended(self, session_id: int, out: OutputWrapper, interrupt: _Interrupt) -> None:
        """Run the session here; while another holds its place, wait and say why."""
        show = _Printer(out)
        told = ""
        while True:
            if run_session(session_id, on_entries=show.entries, stop_wanted=interrupt.who):
                return
            session = Session.objects.get(pk=session_id)
            if session.status not in (Status.QUEUED, Status.RUNNING):
                return
            if interrupt.asked:
                if session.status == Status.QUEUED:
                    queue.request_stop(session_id, by=_who())
                    return
                raise Refusal(
                    "interrupted",
                    f"Session {session_id} goes on elsewhere.",
                    f"manage.py session stop {session_id} ends it.",
                )
            if session.status == Status.QUEUED and session.hold_reason and session.hold_reason != told:
                told = session.hold_reason
                out.write(f"Session {session_id} waits: {told}")
            time.sleep(1)

    def import_(self, *, files: Sequence[str], tier: int, project: str | None) -> Result:
        chosen, by = _project(project), _who()
        done, failed = [], []
        for name in files:
            try:
                imported = import_log(Path(name).expanduser(), by=by, tier=tier, project=chosen)
            except SessionsError as error:
                failed.append({"file": name, "error": str(error), "fix": error.fix})
                continue
            session = Session.objects.get(pk=imported.session_id)
            done.append(
                {
                    "file": name,
                    "session": imported.session_id,
                    "outcome": imported.outcome,
                    "lines": imported.lines,
                    "last_line_cut_off": imported.cut,
                    "status": session.status,
                    "stats": session.stats,
                }
            )
        lines = [_import_line(item) for item in done]
        if failed:
            # What could be imported was; the exit code and the document say what could not.
            for item in failed:
                self.stderr.write(f"Error: {item['error']} {item['fix']}")
        return Result({"imported": done, "failed": failed}, "\n".join(lines), exit_code=1 if failed else 0)

    def list(self, *, status: str | None, agent: str | None, trigger: str | None, limit: int) -> Result:
        if not 1 <= limit <= MOST_LISTED:
            raise Refusal("usage", f"--limit is {limit}; allowed is 1 to {MOST_LISTED}.")
        rows = Session.objects.select_related("agent").order_by("-queued_at", "-id")
        if status:
            rows = rows.filter(status=status)
        if trigger:
            rows = rows.filter(trigger=trigger)
        if agent:
            rows = rows.filter(agent=_agent(agent))
        sessions = list(rows[:limit])
        text = (
            table(
                ["id", "queued (UTC)", "agent", "tier", "trigger", "status", "cost", "turns", "what came of it"],
                [
                    [
                        s.pk,
                        f"{s.queued_at:%m-%d %H:%M}",
                        s.agent.slug if s.agent else "",
                        s.tier,
                        s.trigger,
                        s.status,
                        f"${s.cost_usd:.2f}",
                        s.num_turns,
                        short(came_of(s), 70),
                    ]
                    for s in sessions
                ],
            )
            if sessions
            else "No session yet. Run one: manage.py session run --prompt 'Check the services.'"
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
        words = queue.request_stop(session_id, by=_who())
        return Result({"session": session_id, "done": words}, words)

    def reap(self) -> Result:
        done = reaper.reap()
        data = {name: getattr(done, name) for name in ("followed", "closed", "requeued", "lost", "failed", "ended")}
        told = [f"{name}: {', '.join(map(str, ids))}" for name, ids in data.items() if ids]
        return Result(data, "\n".join(told) or "Every running session is followed.", exit_code=1 if done.failed else 0)


class _Interrupt:
    """Ctrl-C (or SIGTERM) asks the session to stop, instead of leaving it behind."""

    def __init__(self) -> None:
        self.asked = False
        self.before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Interrupt:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.before[number] = signal.signal(number, self._ask)
            except ValueError:  # not in the main thread: whoever runs us there keeps its own handlers
                break
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True

    def who(self) -> str:
        return _who() if self.asked else ""


class _Printer:
    """Readable log lines on a terminal."""

    def __init__(self, out: OutputWrapper) -> None:
        self.out = out

    def entries(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.out.write(entry_text(entry.kind, entry.text))
        self.out.flush()


def _agent(slug: str | None) -> Agent | None:
    if slug is None:
        return None
    found = Agent.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Agent.objects.values_list("slug", flat=True)[:20]) or "none yet (add one in the admin)"
        raise AgentNotFound(f"There is no agent {slug!r}.", f"Known agents: {known}.")
    return found


def _project(slug: str | None) -> Project | None:
    if slug is None:
        return None
    found = Project.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Project.objects.values_list("slug", flat=True)[:20]) or "none yet (add one in the admin)"
        raise Refusal("project_not_found", f"There is no project {slug!r}.", f"Known projects: {known}.")
    return found


def _session(pk: int) -> Session:
    found = Session.objects.select_related("agent", "parent").filter(pk=pk).first()
    if found is None:
        raise SessionNotFound(f"There is no session {pk}.", "manage.py session list shows the latest.")
    return found


def _text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user of this number
        return "command line"


def _import_line(item: dict[str, Any]) -> str:
    words = {
        "imported": f"imported as session {item['session']} ({item['lines']} lines, {item['status']})",
        "continued": f"continues session {item['session']} ({item['lines']} lines, {item['status']})",
        "unchanged": f"already imported as session {item['session']}; nothing changed",
        "own": f"is session {item['session']}, which ran here; nothing changed",
    }[item["outcome"]]
    cut = "; its last line breaks off and was left out" if item["last_line_cut_off"] else ""
    return f"{item['file']}: {words}{cut}"
