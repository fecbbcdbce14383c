# ruff: noqa: N999  (the name of the command)
"""`manage.py agent-memory`: the memory files of a project's agents, seen, extended, synced and kept in order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import (
    Columns,
    Refusal,
    Result,
    VerbCommand,
    arg,
    by,
    difference_of,
    listing,
    text_or_stdin,
    unchanged,
    verb,
)
from claudeops.lib.humanize import ago, quantity
from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file import disk
from memories import store
from memories.capture.fields import agent_id
from memories.capture.statement import HUMAN, Provenance, Statement
from memories.files import storage, tidy
from memories.files.definition import FOLDER, definition_of, replace
from memories.files.instructions import body_of, put, removed, rendered
from memories.files.sections import sections_for
from memories.files.status import Status, statuses
from memories.files.suggest import Line
from memories.files.sync import Synced, agents_of, sync_file
from memories.files.told import told as told_of
from memories.files.told import told_to
from memories.files.trouble import trouble_of
from memories.management.parameters import DEFAULT, LIMITS, file_limit, project
from memories.models import AgentFile, CaptureOutcome, FileState, Project
from memories.models.project import limits_of
from memories.taxonomy import AGENT
from sessions_app.queries.injected_files import last_injected

BROKEN = {FileState.UNREADABLE, FileState.CONFLICT, FileState.UNWRITABLE, FileState.NO_REPOSITORY}
MOST_REASONS = 3
PROJECT = project("the project's slug")
ONE_AGENT = arg("one agent (default: all)", metavar="AGENT", default="")
WHY = arg("why; status shows it", default="")
YES = arg("do it, not only say it")


class Command(VerbCommand):
    help = "What the agents of a project have learned, as Markdown files in its repository."

    def printable(self, text: str) -> str:
        """Leave out credentials, and what a terminal takes for an order: files are text of anybody."""
        return "".join(char for char in mask(text) if char.isprintable() or char in "\n\t")

    @verb
    def status(self, *, project: Project | None = project("one project (default: all)")) -> Result:
        """Each agent: on or off, size, when it was written and told, and what was taken."""
        rows = statuses(project, timezone.now())
        at = last_injected([status.file for status in rows if status.file.pk])
        for status in rows:
            status.told_at = at.get(status.file.pk) if status.file.pk else None
        if not rows:
            add = "manage.py agent-memory add AGENT TYPE CONTENT --project SLUG"
            return Result([], "No agent has a memory file yet.", {add: "begin one"})
        lines = [_table(rows), *(line for status in rows for line in _remarks(status))]
        return Result([status.as_data() for status in rows], "\n".join(lines))

    @verb
    def view(
        self,
        agent: str,
        *,
        project: Project = PROJECT,
        told: bool = arg("what the agent is told of it, and what is left out and why"),
    ) -> Result:
        """One agent's file; --told shows what the agent is told of it."""
        file = _file(project, agent)
        if told:
            return _told(file)
        path = storage.location(file.project, file.agent)
        stored = disk.read(path)
        text = file.text if stored.missing else mask(stored.data.decode("utf-8-sig", "replace"))
        entries = tidy.lines_of(file.project, file.agent)
        data = {"project": project.slug, "agent": file.agent, "path": str(path), "text": text, "entries": entries}
        return Result(data, text.rstrip("\n"))

    @verb
    def add(
        self,
        agent: str = arg("for example research, or data_engineer"),
        type: str = arg(", ".join(AGENT.categories), metavar="TYPE", choices=AGENT.categories),  # noqa: A002
        content: str = arg("what it is to know, in one line; - reads it from stdin", read=text_or_stdin),
        *,
        project: Project = PROJECT,
        by: str = by(),
    ) -> Result:
        """Add what an agent is to know to its file."""
        name = _name(agent)
        provenance = Provenance(HUMAN, by, project_id=project.pk, agent=name, channel=HUMAN)
        stored = store.remember(Statement(type, content, taxonomy=AGENT.slug), provenance).memory_id
        assert stored is not None  # noqa: S101  (a person's memory is stored or refused)
        outcome = sync_file(project, name, by=by, create=True)
        message = f"Memory {stored} is stored for {name}."
        if why := outcome.problem if outcome.state in BROKEN else _why_not_in_file(project, name, stored):
            message += f" Its file does not have it: {why.rstrip('.')}."
            is_told = any(entry["id"] == stored for entry in told_to(name, project.pk).included)
            message += " The agent is told it all the same." if is_told else ""
        else:
            message += f" It is in {outcome.path}."
        return Result({"memory_id": stored, "agent": name, **_synced(outcome)}, message, _look(name, project))

    @verb
    def sync(
        self,
        agent: str = ONE_AGENT,
        *,
        project: Project = PROJECT,
        by: str = arg("the actor of the change (default: your account)", default=""),
    ) -> Result:
        """Read what people changed in the files, and write what is new into them."""
        agents = [_name(agent)] if agent else sorted({*agents_of(project), *storage.agents_on_disk(project)})
        outcomes = [sync_file(project, name, by=by or "system", create=True) for name in agents]
        lines = [line for synced in outcomes for line in _sync_lines(synced)]
        broken = any(synced.state in BROKEN for synced in outcomes)
        text = "\n".join(lines) or f"No agent of {project.slug} has memories or a file."
        return Result([_synced(synced) for synced in outcomes], text, exit_code=int(broken))

    @verb
    def clean(self, agent: str = ONE_AGENT, *, project: Project = PROJECT, by: str = by(), yes: bool = YES) -> Result:
        """Unused files, empty sections and repeated lines; --yes removes them."""
        leftovers = tidy.clean(project, by=by, agent=_file(project, agent).agent if agent else "", yes=yes)
        words = {"unused": "unused file", "section": "empty section", "repeated": "repeated line"}
        lines = [f"{each.agent}: {words[each.kind]}: {each.what}" for each in leftovers]
        if leftovers and not yes:
            lines.append("Nothing was changed; --yes removes them.")
        data = {"done": yes, "found": leftovers}
        return Result(data, "\n".join(lines) or "There is nothing to clean.")

    @verb
    def optimize(
        self, agent: str = ONE_AGENT, *, project: Project = PROJECT, by: str = by(), yes: bool = YES
    ) -> Result:
        """Entries that say nearly the same, and what is beyond the limits; --yes joins and takes out."""
        of_project = AgentFile.objects.filter(project=project).select_related("project")
        files = [_file(project, agent)] if agent else list(of_project)
        plans = [(file, plan) for file in files if (plan := tidy.optimize(file))]
        lines = [line for _, plan in plans for line in _optimized(plan)]
        if yes:
            for file, plan in plans:
                tidy.carry_out(plan, file, by=by)
            lines += ["Entries are joined and taken out of the files; their memories stay stored."] if plans else []
        elif any(plan.joins or plan.leaving for _, plan in plans):
            lines.append("Nothing was changed; --yes joins and takes out.")
        data = {"done": yes, "files": [plan for _, plan in plans]}
        return Result(data, "\n".join(lines) or "There is nothing to make better.")

    @verb
    def cross_ref(
        self,
        *,
        project: Project = PROJECT,
        by: str = by(),
        accept: Sequence[int] = arg("make memory N; repeatable", metavar="N"),
    ) -> Result:
        """What several agents know alike; --accept makes it a memory of the project."""
        suggestions = tidy.shared_of(project)
        by_id = {each.best.memory_id: each for each in suggestions}
        if missing := [pk for pk in accept if pk not in by_id]:
            shown = ", ".join(map(str, by_id)) or "none"
            raise Refusal("not_shared", f"Memory {missing[0]} is not offered.", f"Offered are: {shown}")
        new_ids = {pk: tidy.accept(by_id[pk], project, by=by) for pk in accept}
        lines = [f"Memory {new} of {project.slug} says what memory {pk} says." for pk, new in new_ids.items()]
        remaining = [each for each in suggestions if each.best.memory_id not in new_ids]
        for each in remaining:
            lines.append(f"{each.best.memory_id}: {each.best.text}")
            lines.append(f"   known to {', '.join(each.agents)}; as a memory of the project: {each.category}")
        if remaining:
            lines.append("--accept N makes N a memory of the project; the agents keep theirs.")
        data = {"accepted": new_ids, "shared": [asdict(each) | {"agents": each.agents} for each in remaining]}
        return Result(data, "\n".join(lines) or "No two agents know the same.")

    @verb
    def route(
        self,
        text: str = arg("what is to be known; - reads it from stdin", read=text_or_stdin),
        *,
        project: Project = PROJECT,
    ) -> Result:
        """Which agent and section a text is for, and why."""
        routes = tidy.routes_of(project, text)
        lines = [f"{each.agent}, {each.section} ({each.category}): {each.why}" for each in routes]
        best = routes[0] if routes else None
        then = f"manage.py agent-memory add {best.agent} {best.category} TEXT --project {project.slug}" if best else ""
        text = "\n".join(lines) or f"No agent of {project.slug} is near to it, by its memories or its work."
        return Result(routes, text, {then: "add it there"} if then else {})

    @verb
    def instructions(
        self,
        agent: str = arg("for example research, or data_engineer"),
        *,
        project: Project = PROJECT,
        base: str | None = arg(
            f"instructions before its memory; - reads stdin (default: those in {FOLDER})", metavar="FILE", group="what"
        ),
        write: bool = arg(f"put protocol and memory between two markers of its file in {FOLDER}", group="what"),
        remove: bool = arg("take them out of it", group="what"),
        dry_run: bool = arg("show the difference and change nothing"),
        yes: bool = arg("do not ask"),
    ) -> Result:
        """An agent's instructions with its memory; --write puts both into its definition.

        Without --write and --remove they are printed; with one it shows what would change, asks, and writes it.
        """
        name = agent_id(agent)
        if not name:
            raise Refusal("usage", f"{agent!r} is no name of an agent.")
        data: dict[str, Any] = {"project": project.slug, "agent": name}
        definition = definition_of(project, name) if project.path and base is None else None
        if not (write or remove):
            before = _base(base) if base else body_of(definition.text) if definition else ""
            text = rendered(before, _memory(project, name), sections_for(name, project.files_sections))
            return Result(data | {"text": text}, text.rstrip("\n"))
        if definition is None:
            raise Refusal(
                "invalid_definition",
                f"{name} has no definition in {FOLDER} of "
                f"{project.path or f'project {project.slug}, which has no repository path'}.",
                f"Create {FOLDER}/{name}.md first: the CLI makes it with /agents.",
            )
        after = (
            removed(definition.text)
            if remove
            else put(definition.text, _memory(project, name), sections_for(name, project.files_sections))
        )
        difference = difference_of(definition.path, definition.text, after)
        data |= {"file": str(definition.path), "difference": difference, "written": False}
        if after == definition.text:
            return Result(data, f"{definition.path} is like this already.")
        if not self.agreed(difference, yes=yes, dry_run=dry_run):
            return Result(data, unchanged(difference, dry_run))
        replace(definition, after)
        return Result(data | {"written": True}, f"{definition.path} is written.")

    @verb
    def enable(self, agent: str, *, project: Project = PROJECT, by: str = by(), reason: str = WHY) -> Result:
        """Switch an agent's file on."""
        return _switch(agent, project, by, reason, on=True)

    @verb
    def limits(
        self,
        agent: str,
        limits: Sequence[tuple[str, int | str]] = arg(f"{LIMITS}, or NAME=default", metavar="NAME=N", type=file_limit),
        *,
        project: Project = PROJECT,
        by: str = by(),
    ) -> Result:
        """Give an agent's file limits of its own, in place of the project's."""
        name = _name(agent)
        own = tidy.set_limits(project, name, {key: None if to == DEFAULT else int(to) for key, to in limits})
        sync_file(project, name, by=by, force=True)
        all_of_them = limits_of(own, project.files_limits)
        summary = ", ".join(f"{key} {value}{' (its own)' if key in own else ''}" for key, value in all_of_them.items())
        return Result({"agent": name, "limits": all_of_them, "own": own}, f"{name}: {summary}.", _look(name, project))

    @verb
    def disable(self, agent: str, *, project: Project = PROJECT, by: str = by(), reason: str = WHY) -> Result:
        """Switch an agent's file off: it stays, is not synced, and its agent is not told of it."""
        return _switch(agent, project, by, reason, on=False)


def _memory(project: Project, agent: str) -> str:
    """Return what the agent is told, after a look at what people changed. Raises Refusal while its file is off."""
    if AgentFile.objects.filter(project=project, agent=agent, enabled=False).exists():
        raise Refusal(
            "switched_off",
            f"The memory file of {agent} is switched off.",
            f"manage.py agent-memory enable {agent} --project {project.slug}",
        )
    if project.path:
        sync_file(project, agent)
    return told_to(agent, project.pk).text


def _base(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal("usage", f"{file} cannot be read: {error}.") from error


def _switch(agent: str, project: Project, by: str, reason: str, *, on: bool) -> Result:
    changed = tidy.switch(project, agent, on, by=by, reason=reason)
    name, state = agent_id(agent), "on" if on else "off"
    if on:
        sync_file(project, name, by=by)
    message = f"The file of {name} is {state}." if changed else f"The file of {name} was {state} already."
    return Result({"agent": name, "enabled": on, "changed": changed}, message, _look(name, project))


def _name(agent: str) -> str:
    name = agent_id(agent)
    if not name:
        raise Refusal("no_agent", f"{agent!r} is no name of an agent.", "Give one like research or data-engineer.")
    return name


def _file(project: Project, agent: str) -> AgentFile:
    name = _name(agent)
    file = AgentFile.objects.select_related("project").filter(project=project, agent=name).first()
    if file is None:
        names = ", ".join(AgentFile.objects.filter(project=project).values_list("agent", flat=True)[:20]) or "none yet"
        fix = f"Agents with a file: {names}. Make one with: manage.py agent-memory sync {name} --project {project.slug}"
        raise Refusal("no_file", f"The agent {name} has no memory file in {project.slug}.", fix)
    return file


def _why_not_in_file(project: Project, agent: str, memory_id: int) -> str:
    file = AgentFile.objects.get(project=project, agent=agent)
    if not file.enabled:
        return "it is off"
    entry = file.entries.filter(memory=memory_id).first()
    return "" if entry is not None and not entry.left_because else entry.left_because if entry else "it has no room"


def _table(rows: Sequence[Status]) -> str:
    now = timezone.now()
    cells: Columns = {
        "project": "file.project.slug",
        "agent": "file.agent",
        "file": lambda one: "on" if one.file.enabled else "off",
        "size": lambda one: f"{one.document.size / 1024:.1f} of {one.limits.kilobytes} KB",
        "items": "items",
        "written": lambda one: ago(one.file.written_at, now) if one.file.written_at else "never",
        "injected": lambda one: ago(one.told_at, now) if one.told_at else "never",
        "captured": lambda one: one.taken(CaptureOutcome.CAPTURED, CaptureOutcome.CONFIRMED),
        "refused": lambda one: one.taken(CaptureOutcome.HELD, CaptureOutcome.REFUSED),
        "state": lambda one: FileState(one.file.state).label,
    }
    return listing(rows, cells)


def _remarks(status: Status) -> list[str]:
    """Return what a person should know of one file, below the table."""
    file, remarks = status.file, []
    if not file.enabled:
        who = f" by {file.enabled_by}" if file.enabled_by else ""
        remarks.append(f"off since {file.enabled_at:%Y-%m-%d}{who}: {file.enabled_reason or 'no reason given'}")
    if file.problem:
        remarks += [file.problem, trouble_of(file).advice]
    if status.conflicts:
        remarks.append(f"{quantity(status.conflicts, 'open conflict')}: a person decides which text holds")
    if status.left_out:
        remarks.append(
            f"{quantity(status.left_out, 'entry', 'entries')} without room in the file, and told all the same"
        )
    reasons = sorted(status.refused.items(), key=lambda row: (-row[1], row[0]))
    remarks += [f"not taken in the last week, {count}×: {why}" for why, count in reasons[:MOST_REASONS]]
    if status.older:
        note = "no sync reads them any more" if file.sha256 else "to be taken in by the next sync"
        remarks.append(f"older files ({note}): {', '.join(status.older)}")
    return [f"{file.project.slug} {file.agent}: {line}" for line in remarks]


def _told(file: AgentFile) -> Result:
    content = told_of(file)
    lines = [content.text or "The agent is told nothing of it."]
    if not file.enabled:
        lines.insert(0, "The file is off, so the agent is told nothing. If it were on:")
    omissions = [(f"memory {row['id']}: {row['observation']}", row["reason"]) for row in content.left_out]
    omissions += [(row["text"], row["reason"]) for row in content.untold]
    lines += ["", "Left out:", *(f"- {text} ({why})" for text, why in omissions)] if omissions else []
    return Result(content, "\n".join(lines))


def _optimized(plan: tidy.Optimized) -> list[str]:
    lines = []
    for one in plan.joins:
        lines.append(f"{plan.agent}: joined could be, keeping the first ({one.why})")
        lines += [f"  {_shown(line)}" for line in (one.target, *one.others)]
    if plan.exceeded:
        lines.append(f"{plan.agent}: beyond its limits: {'; '.join(plan.exceeded)}")
        lines += [f"  would leave: {_shown(one.line)} ({one.why})" for one in plan.leaving]
    elif plan.too_long:
        lines += [f"{plan.agent}: too long a line: {text}" for text in plan.too_long]
    return lines


def _shown(line: Line) -> str:
    return f"{line.memory_id}: {line.text}"


def _sync_lines(outcome: Synced) -> list[str]:
    parts = [f"{quantity(outcome.taken, 'change')} of people taken"] if outcome.taken else []
    parts += ["the file is written"] if outcome.written else []
    parts += [f"{quantity(outcome.left, 'entry', 'entries')} without room"] if outcome.left else []
    parts += [f"{quantity(outcome.conflicts, 'open conflict')}"] if outcome.conflicts else []
    what = outcome.problem or ", ".join(parts) or FileState(outcome.state).label
    return [f"{outcome.agent}: {what}", *(f"{outcome.agent}: {note}" for note in outcome.notes)]


def _synced(outcome: Synced) -> dict[str, Any]:
    return asdict(outcome) | {"changed": outcome.changed}


def _look(agent: str, project: Project) -> dict[str, str]:
    return {f"manage.py agent-memory view {agent} --project {project.slug}": "see the file"}
