"""`manage.py project`: add a project, and show and change its settings."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from claudeops.lib.capped import count_of
from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, table
from claudeops.lib.humanize import exact
from memories.lifecycle.projects import SETTINGS, add_project, find_project, set_project
from memories.management.file_limits import ALLOWED as LIMITS_ALLOWED
from memories.management.file_limits import limit
from memories.models import Memory, Project, UsedMeans
from memories.models.project import (
    CLAUDE_CODE,
    FILES_FOLDER,
    FILES_PATTERN,
    LARGEST_BUDGET,
    LONGEST_LIFETIME,
    MOST_IN_PROMPT,
    limits_of,
)
from memories.taxonomy import PROJECT

NEVER, DEFAULT = "never", "default"
LAYOUTS = {"claude-mpm": (FILES_FOLDER, FILES_PATTERN), "claude-code": CLAUDE_CODE}


def _lifetime(text: str) -> tuple[str, int | str]:
    """Parse TYPE=DAYS, TYPE=never or TYPE=default."""
    name, _, days = text.partition("=")
    if name not in PROJECT.categories:
        raise ArgumentTypeError(f"{name!r} is no type; allowed are {', '.join(PROJECT.categories)}")
    if days in (NEVER, DEFAULT):
        return name, days
    if not days.isascii() or not days.isdecimal() or len(days) > 9:
        raise ArgumentTypeError(f"{text!r} is no TYPE=DAYS; examples: warning=90, context=never, learning=default")
    return name, int(days)


def _slug_argument(parser: ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="the project's slug")


def _settings_arguments(parser: ArgumentParser) -> None:
    _slug_argument(parser)
    parser.add_argument("--name", help="its name for people")
    parser.add_argument("--description", help="what it is about")
    parser.add_argument("--path", help="the path of its repository")
    parser.add_argument(
        "--memory-path", metavar="FILE", help="its MEMORY.md below that path; empty: it is kept in the data folder"
    )
    parser.add_argument(
        "--expire",
        type=_lifetime,
        action="append",
        metavar="TYPE=DAYS",
        help=f"when memories of a type ({', '.join(PROJECT.categories)}) expire: 1 to {LONGEST_LIFETIME} days, never, "
        "or default; may be given several times",
    )
    parser.add_argument(
        "--memories-in-prompt", type=int, metavar="N", help=f"memories in a prompt at most (1 to {MOST_IN_PROMPT})"
    )
    parser.add_argument(
        "--memory-budget", type=int, metavar="TOKENS", help=f"tokens of a prompt for them (0 to {LARGEST_BUDGET})"
    )
    parser.add_argument(
        "--files-folder", metavar="FOLDER", help=f"where its agents' memory files are, below its path ({FILES_FOLDER})"
    )
    parser.add_argument(
        "--files-pattern", metavar="NAME", help=f"how an agent's file is named, with {{agent}} once ({FILES_PATTERN})"
    )
    parser.add_argument(
        "--files-of",
        choices=list(LAYOUTS),
        help="folder and pattern at once: claude-mpm (the default), or claude-code (its own agent memories)",
    )
    parser.add_argument(
        "--file-limit",
        type=limit,
        action="append",
        metavar="NAME=N",
        help=f"a limit of these files, or NAME=default: {LIMITS_ALLOWED}",
    )
    parser.add_argument(
        "--takes-phrases", choices=["yes", "no"], help="learn also from the legacy phrases, such as Best practice:"
    )
    parser.add_argument("--observed", choices=["yes", "no"], help="learn from whole sessions of this project")
    parser.add_argument("--used-means", metavar="MEANING", help=f"what counts as a use: {', '.join(UsedMeans.values)}")


class Command(VerbCommand):
    help = "Projects: what memories, agents and sessions belong to, and their settings."
    noun = "project"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "add": Verb("Add a project.", self.add, _settings_arguments),
            "list": Verb("All projects, by slug.", self.list),
            "show": Verb("One project with its settings.", self.show, _slug_argument),
            "set": Verb("Change settings; options that are not given change nothing.", self.set, _settings_arguments),
        }

    def add(self, slug: str, **given: Any) -> Result:
        project = add_project(slug, **_settings(given, Project()))
        return Result(_data(project), f"Project {slug} is added.", _look(slug))

    def list(self) -> Result:
        projects = list(Project.objects.all())
        rows = [(one.slug, one.name, one.path, f"{one.memories_in_prompt}, {one.memory_budget:,}") for one in projects]
        text = table(["slug", "name", "path", "memories, tokens in a prompt"], rows) if rows else "No project yet."
        return Result([_data(one) for one in projects], text, () if rows else _first())

    def show(self, slug: str) -> Result:
        project = find_project(slug)
        data = _data(project)
        facts = [
            ("name", project.name),
            ("description", project.description),
            ("path", project.path),
            ("memory file", project.memory_path),
            ("created", exact(project.created_at)),
            ("memories", f"{count_of(Memory.objects.active().filter(project=project)).shown} active"),
            ("in a prompt", f"{project.memories_in_prompt} memories, {project.memory_budget:,} tokens"),
            ("used means", f"{project.used_means} ({UsedMeans(project.used_means).label})"),
            ("observed", "yes" if project.observed else "no"),
            ("agent files", f"{project.files_folder}/{project.files_pattern}"),
            ("limits", ", ".join(f"{name} {number}" for name, number in limits_of(project.files_limits).items())),
            ("expires", ", ".join(f"{name} {_in_days(days)}" for name, days in data["expires_after_days"].items())),
        ]
        lines = [project.slug, ""] + [f"{name + ':':<13}{value}" for name, value in facts if value]
        return Result(data, "\n".join(lines))

    def set(self, slug: str, **given: Any) -> Result:
        project = find_project(slug)
        settings = _settings(given, project)
        if not settings:
            raise Refusal("usage", "Nothing to change was given.", "manage.py project set --help lists what can be.")
        changed = set_project(project, **settings)
        said = (
            f"Project {slug} is changed: {', '.join(changed)}." if changed else f"Project {slug} was like this already."
        )
        return Result(_data(project) | {"changed": changed}, said, _look(slug))


def _settings(given: dict[str, Any], known: Project) -> dict[str, Any]:
    """Return the settings that were given; a lifetime and a limit change theirs among those of `known`."""
    switches = {name: given.pop(name) for name in ("takes_phrases", "observed")}
    settings = {name: given[name] for name in SETTINGS if given.get(name) is not None}
    settings |= {name: word == "yes" for name, word in switches.items() if word}
    if given["files_of"]:
        settings["files_folder"], settings["files_pattern"] = LAYOUTS[given["files_of"]]
    if given["file_limit"]:
        limits = {**known.files_limits, **dict(given["file_limit"])}
        settings["files_limits"] = {name: number for name, number in limits.items() if number != DEFAULT}
    if given["expire"]:
        wanted = dict(known.default_expiry)
        for name, days in given["expire"]:
            wanted[name] = None if days == NEVER else days
        settings["default_expiry"] = {name: days for name, days in wanted.items() if days != DEFAULT}
    return settings


def _data(project: Project) -> dict[str, Any]:
    settings = {name: getattr(project, name) for name in SETTINGS}
    lifetimes = {name: project.lifetime(name) for name in PROJECT.categories}
    return {
        "id": project.pk,
        "slug": project.slug,
        **settings,
        "expires_after_days": {name: lasts and lasts.days for name, lasts in lifetimes.items()},
        "created_at": project.created_at,
    }


def _in_days(days: int | None) -> str:
    return NEVER if days is None else f"after {days} d"


def _look(slug: str) -> list[NextAction]:
    return [NextAction(f"manage.py project show {slug}", "see its settings")]


def _first() -> list[NextAction]:
    return [NextAction("manage.py project add SLUG --path PATH", "add the first one")]
