"""`manage.py agent-memory`: the memory files of a project's agents, seen, extended, synced and kept in order."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user, table
from claudeops.lib.humanize import ago
from claudeops.lib.secrets import mask
from memories import store
from memories.capture.fields import agent_id
from memories.capture.statement import HUMAN, Provenance, Statement
from memories.files import storage, tidy
from memories.files.status import Status, statuses
from memories.files.suggest import Line
from memories.files.sync import Synced, agents_of, sync_file
from memories.files.told import told, told_to
from memories.files.trouble import trouble_of
from memories.lifecycle.projects import find_project
from memories.management import agent_instructions
from memories.management.file_limits import ALLOWED as LIMITS_ALLOWED
from memories.management.file_limits import DEFAULT, limit
from memories.models import AgentFile, CaptureOutcome, FileState, Project
from memories.models.project import limits_of
from memories.taxonomy import AGENT

BROKEN = {FileState.UNREADABLE, FileState.CONFLICT, FileState.UNWRITABLE, FileState.NO_REPOSITORY}
MOST_REASONS = 3


def _project(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", required=True, help="the project's slug")


def _by(parser: ArgumentParser) -> None:
    parser.add_argument("--by", default="", help="the actor of the change (default: your account)")


def _status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--project", metavar="SLUG", help="one project (default: all)")


def _view_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT")
    _project(parser)
    parser.add_argument(
        "--told", action="store_true", help="what the agent is told of it, and what is left out and why"
    )


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="for example research, or data_engineer")
    parser.add_argument("type", metavar="TYPE", choices=AGENT.categories, help=", ".join(AGENT.categories))
    parser.add_argument("content", metavar="CONTENT", help="what it is to know, in one line; - reads it from stdin")
    _project(parser)
    _by(parser)


def _agent_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", nargs="?", default="", help="one agent (default: all)")
    _project(parser)
    _by(parser)


def _clean_arguments(parser: ArgumentParser) -> None:
    _agent_arguments(parser)
    parser.add_argument("--yes", action="store_true", help="do it, not only say it")


def _shared_arguments(parser: ArgumentParser) -> None:
    _project(parser)
    _by(parser)
    parser.add_argument(
        "--accept", type=int, action="append", default=[], metavar="N", help="make memory N; repeatable"
    )


def _route_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what is to be known; - reads it from stdin")
    _project(parser)


def _switch_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT")
    _project(parser)
    _by(parser)
    parser.add_argument("--reason", default="", help="why; status shows it")


def _limits_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT")
    parser.add_argument("limits", metavar="NAME=N", type=limit, nargs="+", help=f"{LIMITS_ALLOWED}, or NAME=default")
    _project(parser)
    _by(parser)


class Command(VerbCommand):
    help = "What the agents of a project have learned, as Markdown files in its repository."
    noun = "agent-memory"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "status": Verb(
                "Each agent: on or off, size, when it was written and told, and what was taken.",
                self.status,
                _status_arguments,
            ),
            "view": Verb("One agent's file; --told shows what the agent is told of it.", self.view, _view_arguments),
            "add": Verb("Add what an agent is to know to its file.", self.add, _add_arguments),
            "sync": Verb(
                "Read what people changed in the files, and write what is new into them.", self.sync, _agent_arguments
            ),
            "clean": Verb(
                "Unused files, empty sections and repeated lines; --yes removes them.", self.clean, _clean_arguments
            ),
            "optimize": Verb(
                "Entries that say nearly the same, and what is beyond the limits; --yes joins and takes out.",
                self.optimize,
                _clean_arguments,
            ),
            "cross-ref": Verb(
                "What several agents know alike; --accept makes it a memory of the project.",
                self.cross_ref,
                _shared_arguments,
            ),
            "route": Verb("Which agent and section a text is for, and why.", self.route, _route_arguments),
            "instructions": Verb(
                agent_instructions.HELP, partial(agent_instructions.instructions, self), agent_instructions.arguments
            ),
            "enable": Verb("Switch an agent's file on.", self.enable, _switch_arguments),
            "limits": Verb(
                "Give an agent's file limits of its own, in place of the project's.", self.limits, _limits_arguments
            ),
            "disable": Verb(
                "Switch an agent's file off: it stays, is not synced, and its agent is not told of it.",
                self.disable,
                _switch_arguments,
            ),
        }

    def answer(self, command: str, run: Callable[..., Result], options: Mapping[str, Any]) -> None:
        """Answer without credentials, and without what a terminal takes for an order: files are text of anybody."""

        def made(**given: Any) -> Result:
            result = run(**given)
            return replace(result, text=_printable(mask(result.text)))

        super().answer(command, made, options)

    def last_told(self, files: Sequence[AgentFile]) -> dict[int, datetime]:
        """Return when the agents were last told of their files, by file; the sessions know it."""
        return {}

    def status(self, project: str | None) -> Result:
        one = find_project(project) if project else None
        found = statuses(one, timezone.now())
        at = self.last_told([status.file for status in found if status.file.pk])
        for status in found:
            status.told_at = at.get(status.file.pk) if status.file.pk else None
        if not found:
            add = "manage.py agent-memory add AGENT TYPE CONTENT --project SLUG"
            return Result([], "No agent has a memory file yet.", [NextAction(add, "begin one")])
        lines = [_table(found), *(line for status in found for line in _remarks(status))]
        return Result([status.as_data() for status in found], "\n".join(lines))

    def view(self, agent: str, project: str, told: bool) -> Result:
        file = _file(find_project(project), agent)
        if told:
            return _told(file)
        path = storage.location(file.project, file.agent)
        stored = storage.read(path)
        text = file.text if stored.missing else mask(stored.data.decode("utf-8-sig", "replace"))
        entries = [asdict(line) for line in tidy.lines_of(file.project, file.agent)]
        data = {"project": project, "agent": file.agent, "path": str(path), "text": text, "entries": entries}
        return Result(data, text.rstrip("\n"))

    def add(self, agent: str, type: str, content: str, project: str, by: str) -> Result:  # noqa: A002
        one, name, who = find_project(project), _name(agent), by or current_user()
        text = sys.stdin.read() if content == "-" else content
        stored = add_line(one, name, type, text, by=who)
        done = sync_file(one, name, by=who, create=True)
        said = f"Memory {stored} is stored for {name}."
        if why := done.problem if done.state in BROKEN else _why_not_in_file(one, name, stored):
            said += f" Its file does not have it: {why.rstrip('.')}."
            is_told = any(entry["id"] == stored for entry in told_to(name, one.pk).included)
            said += " The agent is told it all the same." if is_told else ""
        else:
            said += f" It is in {done.path}."
        return Result({"memory_id": stored, "agent": name, **_synced(done)}, said, _look(name, project))

    def sync(self, agent: str, project: str, by: str) -> Result:
        one = find_project(project)
        agents = [_name(agent)] if agent else sorted({*agents_of(one), *storage.agents_on_disk(one)})
        done = [sync_file(one, name, by=by or "system", create=True) for name in agents]
        lines = [line for synced in done for line in _sync_lines(synced)]
        broken = any(synced.state in BROKEN for synced in done)
        text = "\n".join(lines) or f"No agent of {project} has memories or a file."
        return Result([_synced(synced) for synced in done], text, exit_code=int(broken))

    def clean(self, agent: str, project: str, by: str, yes: bool) -> Result:
        one = find_project(project)
        found = tidy.clean(one, by=by or current_user(), agent=_file(one, agent).agent if agent else "", yes=yes)
        words = {"unused": "unused file", "section": "empty section", "repeated": "repeated line"}
        lines = [f"{each.agent}: {words[each.kind]}: {each.what}" for each in found]
        if found and not yes:
            lines.append("Nothing was changed; --yes removes them.")
        data = {"done": yes, "found": [asdict(each) for each in found]}
        return Result(data, "\n".join(lines) or "There is nothing to clean.")

    def optimize(self, agent: str, project: str, by: str, yes: bool) -> Result:
        one = find_project(project)
        files = [_file(one, agent)] if agent else list(AgentFile.objects.filter(project=one).select_related("project"))
        found = [(file, made) for file in files if (made := tidy.optimize(file))]
        lines = [line for _, made in found for line in _optimized(made)]
        if yes:
            for file, made in found:
                tidy.carry_out(made, file, by=by or current_user())
            lines += ["Entries are joined and taken out of the files; their memories stay stored."] if found else []
        elif any(made.joins or made.leaving for _, made in found):
            lines.append("Nothing was changed; --yes joins and takes out.")
        data = {"done": yes, "files": [asdict(made) for _, made in found]}
        return Result(data, "\n".join(lines) or "There is nothing to make better.")

    def cross_ref(self, project: str, accept: list[int], by: str) -> Result:
        one = find_project(project)
        found = tidy.shared_of(one)
        by_id = {each.best.memory_id: each for each in found}
        if missing := [pk for pk in accept if pk not in by_id]:
            shown = ", ".join(map(str, by_id)) or "none"
            raise Refusal("not_shared", f"Memory {missing[0]} is not offered.", f"Offered are: {shown}")
        made = {pk: tidy.accept(by_id[pk], one, by=by or current_user()) for pk in accept}
        lines = [f"Memory {new} of {project} says what memory {pk} says." for pk, new in made.items()]
        left = [each for each in found if each.best.memory_id not in made]
        for each in left:
            lines.append(f"{each.best.memory_id}: {each.best.text}")
            lines.append(f"   known to {', '.join(each.agents)}; as a memory of the project: {each.category}")
        if left:
            lines.append("--accept N makes N a memory of the project; the agents keep theirs.")
        data = {"accepted": made, "shared": [asdict(each) | {"agents": each.agents} for each in left]}
        return Result(data, "\n".join(lines) or "No two agents know the same.")

    def route(self, text: str, project: str) -> Result:
        said = sys.stdin.read() if text == "-" else text
        found = tidy.routes_of(find_project(project), said)
        lines = [f"{each.agent}, {each.section} ({each.category}): {each.why}" for each in found]
        best = found[0] if found else None
        then = f"manage.py agent-memory add {best.agent} {best.category} TEXT --project {project}" if best else ""
        text = "\n".join(lines) or f"No agent of {project} is near to it, by its memories or its work."
        return Result([asdict(each) for each in found], text, [NextAction(then, "add it there")] if then else ())

    def enable(self, agent: str, project: str, by: str, reason: str) -> Result:
        return self._switch(agent, project, by, reason, on=True)

    def disable(self, agent: str, project: str, by: str, reason: str) -> Result:
        return self._switch(agent, project, by, reason, on=False)

    def limits(self, agent: str, project: str, by: str, limits: Sequence[tuple[str, int | str]]) -> Result:
        one, name = find_project(project), _name(agent)
        given = {key: None if value == DEFAULT else int(value) for key, value in limits}
        own = tidy.set_limits(one, name, given)
        sync_file(one, name, by=by or current_user(), force=True)
        all_of_them = limits_of(own, one.files_limits)
        said = ", ".join(f"{key} {value}{' (its own)' if key in own else ''}" for key, value in all_of_them.items())
        return Result({"agent": name, "limits": all_of_them, "own": own}, f"{name}: {said}.", _look(name, project))

    def _switch(self, agent: str, project: str, by: str, reason: str, *, on: bool) -> Result:
        one, who = find_project(project), by or current_user()
        changed = tidy.switch(one, agent, on, by=who, reason=reason)
        name, state = agent_id(agent), "on" if on else "off"
        if on:
            sync_file(one, name, by=who)
        said = f"The file of {name} is {state}." if changed else f"The file of {name} was {state} already."
        return Result({"agent": name, "enabled": on, "changed": changed}, said, _look(name, project))


def add_line(project: Project, agent: str, category: str, text: str, *, by: str) -> int:
    """Store what a person wants an agent to know; returns the memory's id. Raises InvalidMemory."""
    statement = Statement(category, text, taxonomy=AGENT.slug)
    provenance = Provenance(HUMAN, by, project_id=project.pk, agent=agent, channel=HUMAN)
    stored = store.remember(statement, provenance).memory_id
    assert stored is not None  # noqa: S101  (a person's memory is stored or refused)
    return stored


def _name(agent: str) -> str:
    name = agent_id(agent)
    if not name:
        raise Refusal("no_agent", f"{agent!r} is no name of an agent.", "Give one like research or data-engineer.")
    return name


def _file(project: Project, agent: str) -> AgentFile:
    name = _name(agent)
    file = AgentFile.objects.select_related("project").filter(project=project, agent=name).first()
    if file is None:
        known = ", ".join(AgentFile.objects.filter(project=project).values_list("agent", flat=True)[:20]) or "none yet"
        fix = f"Agents with a file: {known}. Make one with: manage.py agent-memory sync {name} --project {project.slug}"
        raise Refusal("no_file", f"The agent {name} has no memory file in {project.slug}.", fix)
    return file


def _why_not_in_file(project: Project, agent: str, memory_id: int) -> str:
    file = AgentFile.objects.get(project=project, agent=agent)
    if not file.enabled:
        return "it is off"
    entry = file.entries.filter(memory=memory_id).first()
    return "" if entry is not None and not entry.left_because else entry.left_because if entry else "it has no room"


def _table(found: Iterable[Status]) -> str:
    now = timezone.now()
    rows = [
        (
            status.file.project.slug,
            status.file.agent,
            "on" if status.file.enabled else "off",
            f"{status.document.size / 1024:.1f} of {status.limits.kilobytes} KB",
            status.items,
            ago(status.file.written_at, now) if status.file.written_at else "never",
            ago(status.told_at, now) if status.told_at else "never",
            status.taken(CaptureOutcome.CAPTURED, CaptureOutcome.CONFIRMED),
            status.taken(CaptureOutcome.HELD, CaptureOutcome.REFUSED),
            FileState(status.file.state).label,
        )
        for status in found
    ]
    headers = ["project", "agent", "file", "size", "items", "written", "injected", "captured", "refused", "state"]
    return table(headers, rows)


def _remarks(status: Status) -> list[str]:
    """Return what a person should know of one file, below the table."""
    file, said = status.file, []
    if not file.enabled:
        who = f" by {file.enabled_by}" if file.enabled_by else ""
        said.append(f"off since {file.enabled_at:%Y-%m-%d}{who}: {file.enabled_reason or 'no reason given'}")
    if file.problem:
        said += [file.problem, trouble_of(file).advice]
    if status.conflicts:
        said.append(f"{_number(status.conflicts, 'open conflict')}: a person decides which text holds")
    if status.left_out:
        said.append(f"{_number(status.left_out, 'entry', 'entries')} without room in the file, and told all the same")
    reasons = sorted(status.refused.items(), key=lambda row: (-row[1], row[0]))
    said += [f"not taken in the last week, {count}×: {why}" for why, count in reasons[:MOST_REASONS]]
    if status.older:
        taken = "no sync reads them any more" if file.sha256 else "to be taken in by the next sync"
        said.append(f"older files ({taken}): {', '.join(status.older)}")
    return [f"{file.project.slug} {file.agent}: {line}" for line in said]


def _told(file: AgentFile) -> Result:
    found = told(file)
    lines = [found.text or "The agent is told nothing of it."]
    if not file.enabled:
        lines.insert(0, "The file is off, so the agent is told nothing. If it were on:")
    left = [(f"memory {row['id']}: {row['observation']}", row["reason"]) for row in found.left_out]
    left += [(row["text"], row["reason"]) for row in found.untold]
    lines += ["", "Left out:", *(f"- {text} ({why})" for text, why in left)] if left else []
    return Result(asdict(found), "\n".join(lines))


def _optimized(found: tidy.Optimized) -> list[str]:
    lines = []
    for one in found.joins:
        lines.append(f"{found.agent}: joined could be, keeping the first ({one.why})")
        lines += [f"  {_shown(line)}" for line in (one.target, *one.others)]
    if found.exceeded:
        lines.append(f"{found.agent}: beyond its limits: {'; '.join(found.exceeded)}")
        lines += [f"  would leave: {_shown(one.line)} ({one.why})" for one in found.leaving]
    elif found.too_long:
        lines += [f"{found.agent}: too long a line: {text}" for text in found.too_long]
    return lines


def _shown(line: Line) -> str:
    return f"{line.memory_id}: {line.text}"


def _sync_lines(done: Synced) -> list[str]:
    parts = [f"{_number(done.taken, 'change')} of people taken"] if done.taken else []
    parts += ["the file is written"] if done.written else []
    parts += [f"{_number(done.left, 'entry', 'entries')} without room"] if done.left else []
    parts += [f"{_number(done.conflicts, 'open conflict')}"] if done.conflicts else []
    what = done.problem or ", ".join(parts) or FileState(done.state).label
    return [f"{done.agent}: {what}", *(f"{done.agent}: {note}" for note in done.notes)]


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else "" for char in text)


def _number(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def _synced(done: Synced) -> dict[str, Any]:
    return asdict(done) | {"changed": done.changed}


def _look(agent: str, project: str) -> list[NextAction]:
    return [NextAction(f"manage.py agent-memory view {agent} --project {project}", "see the file")]
