"""The verb `instructions` of `manage.py agent-memory`: an agent's instructions with its memory, printed or written."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from claudeops.lib.cli import Refusal, Result, VerbCommand, difference_of, unchanged
from memories.capture.fields import agent_id
from memories.files.definition import FOLDER, Definition, definition_of, replace
from memories.files.instructions import body_of, put, removed, rendered
from memories.files.sections import sections_for
from memories.files.sync import sync_file
from memories.files.told import told_to
from memories.lifecycle.projects import find_project
from memories.models import AgentFile, Project

HELP = "An agent's instructions with its memory; --write puts both into its definition."


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="for example research, or data_engineer")
    parser.add_argument("--project", metavar="SLUG", required=True, help="the project's slug")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--base", metavar="FILE", help=f"instructions before its memory; - reads stdin (default: those in {FOLDER})"
    )
    what.add_argument(
        "--write", action="store_true", help=f"put protocol and memory between two markers of its file in {FOLDER}"
    )
    what.add_argument("--remove", action="store_true", help="take them out of it")
    parser.add_argument("--dry-run", action="store_true", help="show the difference and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def instructions(
    command: VerbCommand,
    agent: str,
    project: str,
    base: str | None,
    write: bool,
    remove: bool,
    dry_run: bool,
    yes: bool,
) -> Result:
    """Print the instructions, or show what would change in the agent's definition, ask, and write it."""
    of, name = find_project(project), agent_id(agent)
    if not name:
        raise Refusal("usage", f"{agent!r} is no name of an agent.")
    data: dict[str, Any] = {"project": project, "agent": name}
    found = definition_of(of, name) if of.path and base is None else None
    if not (write or remove):
        before = _base(base) if base else body_of(found.text) if found else ""
        text = rendered(before, _memory(of, name), sections_for(name, of.files_sections))
        return Result(data | {"text": text}, text.rstrip("\n"))
    if found is None:
        raise Refusal(
            "invalid_definition",
            f"{name} has no definition in {FOLDER} of {of.path or f'project {project}, which has no repository path'}.",
            f"Create {FOLDER}/{name}.md first: the CLI makes it with /agents.",
        )
    after = removed(found.text) if remove else put(found.text, _memory(of, name), sections_for(name, of.files_sections))
    return _written(command, data, found, after, dry_run, yes)


def _written(
    command: VerbCommand, data: dict[str, Any], found: Definition, after: str, dry_run: bool, yes: bool
) -> Result:
    difference = difference_of(found.path, found.text, after)
    data |= {"file": str(found.path), "difference": difference, "written": False}
    if after == found.text:
        return Result(data, f"{found.path} is like this already.")
    if not command.agreed(difference, dry_run, yes):
        return Result(data, unchanged(difference, dry_run))
    replace(found, after)
    return Result(data | {"written": True}, f"{found.path} is written.")


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
