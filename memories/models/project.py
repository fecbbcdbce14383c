"""Projects. A memory with a project is limited to it; one without is global."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from pathlib import PurePath, PurePosixPath
from types import MappingProxyType
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from claudeops.lib.masked import MaskedCharField, MaskedTextField
from memories.taxonomy import PROJECT

LONGEST_LIFETIME = 3650
"""Days."""
LONGEST_PATH = 500
MOST_IN_PROMPT = 100
"""Memories."""
LARGEST_BUDGET = 100_000
"""Tokens."""


FILES_FOLDER = ".claude-mpm/memories"
FILES_PATTERN = "{agent}_agent.md"
CLAUDE_CODE = (".claude/agent-memory", "{agent}/MEMORY.md")
"""Folder and pattern of Claude Code's own agent memories: the other named choice."""
MEMORY_FOLDERS = frozenset(
    {(".claude", "agent-memory"), (".claude", "agent-memory-local"), (".claude-mpm", "memories")}
)
"""The hidden folders in which files of ours may stand, as pairs of names. What else is hidden programs obey."""
OBEYED = frozenset({"agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills"})
"""The folders of Claude Code's own home that say what it does."""
AGENT_ID = re.compile(r"\w{1,64}")
MOST_SECTIONS = 20
FILE_LIMITS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {"kilobytes": (8, 1, 256), "sections": (10, 1, 50), "items": (15, 1, 200), "line": (120, 40, 500)}
)
"""What an agent file may hold: (default, least, most). Kilobytes are 1,024 bytes; a line is in characters."""


def limits_of(*levels: Mapping[str, int]) -> dict[str, int]:
    """Return the limits of a file, each of the first of `levels` (the file's own, the project's) that states it."""
    return {
        name: next((level[name] for level in levels if name in level), default)
        for name, (default, _, _) in FILE_LIMITS.items()
    }


class UsedMeans(models.TextChoices):
    """What counts as a use of a memory by a session."""

    NAMED = "named", "the session named it"
    INJECTED = "injected", "it was in the session's prompt"


def checked_lifetimes(value: Any) -> None:
    """Raise ValidationError unless `value` maps categories of the project taxonomy to days, or to null for never."""
    if not isinstance(value, Mapping):
        raise ValidationError('Give an object of days by type, such as {"warning": 90, "context": null}.')
    for name, days in value.items():
        if name not in PROJECT.categories:
            raise ValidationError(f"{str(name)[:40]!r} is no type; allowed are {', '.join(PROJECT.categories)}.")
        if days is None:
            continue
        if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= LONGEST_LIFETIME:
            raise ValidationError(f"{name} expires after 1 to {LONGEST_LIFETIME:,} days, or never (null).")


def is_obeyed(path: PurePath, root: PurePath | None = None) -> bool:
    """Whether programs do what a file of this path below `root` says: git, hooks, Claude Code's agents and their like.

    Below the root, a hidden folder is allowed that is one of MEMORY_FOLDERS. In whatever case, as file systems are.
    """
    names = [name.casefold() for name in path.parts]
    ours = [pair in MEMORY_FOLDERS for pair in pairwise([*names, ""])]
    first = ours.index(True) if True in ours else len(names)
    if "hooks" in names[:first] or any(name.startswith(".") and not ours[at] for at, name in enumerate(names)):
        return True
    whole = [name.casefold() for name in (root / path if root else path).parts]
    return ".git" in whole or any(one == ".claude" and below in OBEYED for one, below in pairwise(whole))


def checked_folder(value: str) -> None:
    """Raise ValidationError unless `value` is a folder below the repository where nothing is obeyed."""
    parts = PurePosixPath(value).parts
    if not parts or value.startswith(("/", "~")) or ".." in parts or "\\" in value or not value.isprintable():
        raise ValidationError("Give a folder below the repository, such as .claude-mpm/memories.")
    if is_obeyed(PurePosixPath(value)):
        allowed = ", ".join(sorted("/".join(pair) for pair in MEMORY_FOLDERS))
        raise ValidationError(f"Programs obey what is in such a folder. Of hidden ones these are allowed: {allowed}.")


def checked_pattern(value: str) -> None:
    """Raise ValidationError unless `value` is a file's path below the folder, with {agent} once."""
    checked_folder(value)
    rest = value.replace("{agent}", "", 1)
    if "{agent}" not in value or "{" in rest or "}" in rest or not value.endswith(".md"):
        raise ValidationError("Give a file's name with {agent} once that ends with .md, such as {agent}_agent.md.")


def checked_memory_path(value: str) -> None:
    """Raise ValidationError unless `value` is the path of a Markdown file below the repository."""
    checked_folder(value)
    if not value.endswith(".md"):
        raise ValidationError("Give the path of a Markdown file below the repository, such as docs/MEMORY.md.")


def checked_file_limits(value: Any) -> None:
    """Raise ValidationError unless `value` maps names of FILE_LIMITS to whole numbers that are allowed."""
    if not isinstance(value, Mapping):
        raise ValidationError('Give an object, such as {"kilobytes": 8, "items": 15}.')
    for name, number in value.items():
        if name not in FILE_LIMITS:
            raise ValidationError(f"{str(name)[:40]!r} is no limit; allowed are {', '.join(FILE_LIMITS)}.")
        _, least, most = FILE_LIMITS[name]
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            raise ValidationError(f"{name} is a whole number from {least} to {most}.")


def checked_section_sets(value: Any) -> None:
    """Raise ValidationError unless `value` maps normalised agent ids to lists of section names."""
    if not isinstance(value, Mapping):
        raise ValidationError('Give an object, such as {"research": ["Sources"]}.')
    for agent, names in value.items():
        if not isinstance(agent, str) or not AGENT_ID.fullmatch(agent) or agent != agent.lower():
            raise ValidationError(f"{str(agent)[:40]!r} is no agent id: lower case letters, digits and underscores.")
        if not isinstance(names, list) or not 1 <= len(names) <= MOST_SECTIONS:
            raise ValidationError(f"{agent}: give a list of 1 to {MOST_SECTIONS} section names.")
        for name in names:
            if not isinstance(name, str) or not name.strip() or len(name) > 80 or not name.isprintable():
                raise ValidationError(f"{agent}: a section's name is one line of 1 to 80 characters.")


class Project(models.Model):
    """`default_expiry` has the days after which its memories expire, by type (null: never).

    A type that is missing has the taxonomy's lifetime. `memory_budget` is in tokens (characters / 4).
    """

    slug = models.SlugField(max_length=64, unique=True)
    name = MaskedCharField(max_length=200, blank=True, default="")
    description = MaskedTextField(blank=True, default="")
    default_expiry = models.JSONField(
        default=dict,
        blank=True,
        validators=[checked_lifetimes],
        help_text="Days by type, or null for never; a type that is missing has the default.",
    )
    path = MaskedCharField(
        "repository path", max_length=LONGEST_PATH, blank=True, default="", help_text="Where its files are."
    )
    memories_in_prompt = models.PositiveSmallIntegerField(
        "memories in a prompt",
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_IN_PROMPT)],
        help_text=f"How many of its memories a prompt has at most, 1 to {MOST_IN_PROMPT}.",
    )
    memory_budget = models.PositiveIntegerField(
        "memory budget",
        default=500,
        validators=[MaxValueValidator(LARGEST_BUDGET)],
        help_text=f"Tokens of a prompt for its memories, 0 to {LARGEST_BUDGET:,}.",
    )
    used_means = models.CharField(
        "used means",
        max_length=8,
        default=UsedMeans.NAMED,
        choices=UsedMeans.choices,
        help_text="What counts as a use, which raises or lowers a memory's confidence by the session's outcome.",
    )
    files_folder = models.CharField(
        "folder of agent files",
        max_length=200,
        default=FILES_FOLDER,
        validators=[checked_folder],
        help_text=f"Below the repository path. Claude Code's own is {CLAUDE_CODE[0]}.",
    )
    files_pattern = models.CharField(
        "name of an agent file",
        max_length=200,
        default=FILES_PATTERN,
        validators=[checked_pattern],
        help_text=f"With {{agent}} once. Claude Code's own is {CLAUDE_CODE[1]}.",
    )
    files_limits = models.JSONField(
        "limits of agent files",
        default=dict,
        blank=True,
        validators=[checked_file_limits],
        help_text="What is missing has the default: " + ", ".join(f"{k} {v[0]}" for k, v in FILE_LIMITS.items()) + ".",
    )
    files_sections = models.JSONField(
        "sections of agent files",
        default=dict,
        blank=True,
        validators=[checked_section_sets],
        help_text="Sections that an agent has beside the standard ones, by its id.",
    )
    trusts_repository = models.BooleanField(
        "trust its repository",
        default=False,
        db_default=False,
        help_text="All who write into its repository may be believed: what its files, history and programs show "
        "counts as output of the own machines. Else a sentence in them is outside text.",
    )
    trusted_authors = MaskedTextField(
        "trusted authors",
        blank=True,
        default="",
        db_default="",
        help_text="E-mail addresses, one a line. A commit of theirs is their word, unless an agent was at work then.",
    )
    allowed_signers = models.TextField(
        "allowed signers",
        blank=True,
        default="",
        db_default="",
        help_text="Lines of an allowed_signers file of ssh. A commit that one of these keys signed is its owner's "
        "word. A signature proves the key: let it ask for a touch or a passphrase each time.",
    )
    memory_path = models.CharField(
        "path of MEMORY.md",
        max_length=200,
        blank=True,
        default="",
        db_default="",
        validators=[checked_memory_path],
        help_text="Below the repository path, such as MEMORY.md; empty = in the data folder.",
    )
    takes_phrases = models.BooleanField(
        "takes the legacy phrases",
        default=False,
        help_text='Learn also from "Discovered pattern:", "Best practice:", "Mistake:" and "Architecture:".',
    )
    observed = models.BooleanField(
        "observe its sessions", default=True, db_default=True, help_text="Learn from whole sessions of this project."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        db_table = "projects"
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug

    def clean(self) -> None:
        """Refuse an empty list or text as `default_expiry`, which the field would take for blank; check its path."""
        for name in ("files_folder", "memory_path"):
            if self.path and is_obeyed(PurePosixPath(getattr(self, name)), PurePosixPath(self.path)):
                raise ValidationError({"path": f"With {name} this is where git or Claude Code obeys what it reads."})
        try:
            checked_lifetimes(self.default_expiry)
        except ValidationError as error:
            raise ValidationError({"default_expiry": error.messages}) from None

    def lifetime(self, category: str) -> timedelta | None:
        """Return how long a memory of this type lives; None for ever."""
        if category in self.default_expiry:
            days = self.default_expiry[category]
            return None if days is None else timedelta(days=days)
        return PROJECT.expires.get(category)
