"""`manage.py project`: add a project, and show and change its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from claudeops.lib.capped import count_of
from claudeops.lib.cli import Refusal, Result, VerbCommand, arg, columns, listing, verb
from claudeops.lib.humanize import exact
from memories.lifecycle.projects import SETTINGS, add_project, find_project, set_project
from memories.management.parameters import DEFAULT, LIMITS, assignment, file_limit
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

NEVER = "never"
LAYOUTS = {"claude-mpm": (FILES_FOLDER, FILES_PATTERN), "claude-code": CLAUDE_CODE}
SLUG = arg("the project's slug")
TYPES = ", ".join(PROJECT.categories)

_lifetime = assignment(
    PROJECT.categories, "type", "TYPE=DAYS", "warning=90, context=never, learning=default", (NEVER, DEFAULT)
)


@dataclass(frozen=True)
class Settings:
    name: str | None = arg("its name for people")
    description: str | None = arg("what it is about")
    path: str | None = arg("the path of its repository")
    memory_path: str | None = arg("its MEMORY.md below that path; empty: it is kept in the data folder", metavar="FILE")
    expire: Sequence[tuple[str, int | str]] = arg(
        f"when memories of a type ({TYPES}) expire: 1 to {LONGEST_LIFETIME} days, never, or default; may be given "
        "several times",
        metavar="TYPE=DAYS",
        type=_lifetime,
    )
    memories_in_prompt: int | None = arg(f"memories in a prompt at most (1 to {MOST_IN_PROMPT})", metavar="N")
    memory_budget: int | None = arg(f"tokens of a prompt for them (0 to {LARGEST_BUDGET})", metavar="TOKENS")
    files_folder: str | None = arg(
        f"where its agents' memory files are, below its path ({FILES_FOLDER})", metavar="FOLDER"
    )
    files_pattern: str | None = arg(
        f"how an agent's file is named, with {{agent}} once ({FILES_PATTERN})", metavar="NAME"
    )
    files_of: str | None = arg(
        "folder and pattern at once: claude-mpm (the default), or claude-code (its own agent memories)",
        choices=list(LAYOUTS),
    )
    file_limit: Sequence[tuple[str, int | str]] = arg(
        f"a limit of these files, or NAME=default: {LIMITS}", metavar="NAME=N", type=file_limit
    )
    takes_phrases: str | None = arg("learn also from the legacy phrases, such as Best practice:", choices=["yes", "no"])
    observed: str | None = arg("learn from whole sessions of this project", choices=["yes", "no"])
    trusted_authors: str | None = arg(
        "e-mail addresses of those whose commits are their word, with spaces between them"
    )
    used_means: str | None = arg(f"what counts as a use: {', '.join(UsedMeans.values)}", metavar="MEANING")
    trusts_repository: str | None = arg("all who write into its repository may be believed", choices=["yes", "no"])

    def changes(self, known: Project) -> dict[str, Any]:
        """Return the settings that were given; a lifetime and a limit change theirs among those of `known`."""
        values = {name: getattr(self, name, None) for name in SETTINGS}
        changes = {name: value for name, value in values.items() if value is not None}
        changes |= {
            name: changes[name] == "yes"
            for name in ("takes_phrases", "observed", "trusts_repository")
            if name in changes
        }
        if self.files_of:
            changes["files_folder"], changes["files_pattern"] = LAYOUTS[self.files_of]
        if self.file_limit:
            limits = {**known.files_limits, **dict(self.file_limit)}
            changes["files_limits"] = {name: number for name, number in limits.items() if number != DEFAULT}
        if self.expire:
            wanted = {**known.default_expiry, **dict(self.expire)}
            changes["default_expiry"] = {
                name: None if days == NEVER else days for name, days in wanted.items() if days != DEFAULT
            }
        return changes


YES_OR_NO = ("takes_phrases", "observed", "trusts_repository")


class Command(VerbCommand):
    help = "Projects: what memories, agents and sessions belong to, and their settings."

    @verb
    def add(self, slug: str = SLUG, *, settings: Settings) -> Result:
        """Add a project."""
        project = add_project(slug, **settings.changes(Project()))
        return Result(_data(project), f"Project {slug} is added.", _look(slug))

    @verb
    def list_(self) -> Result:
        """All projects, by slug."""
        projects = list(Project.objects.all())
        budget = {"memories, tokens in a prompt": lambda one: f"{one.memories_in_prompt}, {one.memory_budget:,}"}
        text = listing(projects, {"slug": "slug", "name": "name", "path": "path", **budget}, "No project yet.")
        first = {"manage.py project add SLUG --path PATH": "add the first one"}
        return Result([_data(one) for one in projects], text, {} if projects else first)

    @verb
    def show(self, slug: str = SLUG) -> Result:
        """One project with its settings."""
        project = find_project(slug)
        data = _data(project)
        days_of = data["expires_after_days"].items()
        lifetimes = {name: NEVER if days is None else f"after {days} d" for name, days in days_of}
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
            ("repository", "trusted" if project.trusts_repository else "a sentence in it is outside text"),
            ("agent files", f"{project.files_folder}/{project.files_pattern}"),
            ("limits", ", ".join(f"{name} {number}" for name, number in limits_of(project.files_limits).items())),
            ("expires", ", ".join(f"{name} {words}" for name, words in lifetimes.items())),
        ]
        lines = [project.slug, ""] + [f"{name + ':':<13}{value}" for name, value in facts if value]
        return Result(data, "\n".join(lines))

    @verb
    def set_(self, slug: str = SLUG, *, settings: Settings) -> Result:
        """Change settings; options that are not given change nothing."""
        project = find_project(slug)
        changes = settings.changes(project)
        if not changes:
            raise Refusal("usage", "Nothing to change was given.", "manage.py project set --help lists what can be.")
        changed = set_project(project, **changes)
        outcome = f"is changed: {', '.join(changed)}." if changed else "was like this already."
        return Result(_data(project) | {"changed": changed}, f"Project {slug} {outcome}", _look(slug))


def _data(project: Project) -> dict[str, Any]:
    lifetimes = {name: project.lifetime(name) for name in PROJECT.categories}
    return {
        "id": project.pk,
        **columns(project, "slug", *SETTINGS),
        "expires_after_days": {name: lasts and lasts.days for name, lasts in lifetimes.items()},
        "created_at": project.created_at,
    }


def _look(slug: str) -> dict[str, str]:
    return {f"manage.py project show {slug}": "see its settings"}
