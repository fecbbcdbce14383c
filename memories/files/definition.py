"""The definition of an agent for the CLI in the repository of its project: found by its id, read and written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from claudeops.lib.tracked_file import disk
from claudeops.lib.tracked_file.document import LARGEST
from memories.capture.fields import agent_id
from memories.errors import MemoriesError
from memories.files import storage
from memories.models import Project

FOLDER = ".claude/agents"


class InvalidDefinition(MemoriesError):
    """A definition cannot be found, read or written."""

    code = "invalid_definition"


@dataclass(frozen=True, slots=True)
class Definition:
    path: Path
    text: str


def definition_of(project: Project, agent: str) -> Definition | None:
    """Return the definition whose file has the agent's name, however written; None without one.

    Raises InvalidDefinition: several of that name, a file that is no text; Unusable: a link out of the repository.
    """
    try:
        folder = storage.inside(project, FOLDER, obeyed=True)
        names = sorted(path.name for path in folder.glob("*.md") if agent_id(path.stem) == agent)
        if not names:
            return None
        if len(names) > 1:
            raise InvalidDefinition(f"{agent} has several definitions in {folder}: {', '.join(names)}.", "Keep one.")
        path = storage.inside(project, f"{FOLDER}/{names[0]}", obeyed=True)
        return Definition(path, _text(path))
    except OSError as error:
        raise InvalidDefinition(str(error)) from error


def replace(before: Definition, text: str) -> None:
    """Give the definition another text, the whole file or nothing; its mode stays.

    Raises InvalidDefinition when the file was changed meanwhile, Unusable when it cannot be written.
    """
    if _text(before.path) != before.text:
        raise InvalidDefinition(f"{before.path} was changed meanwhile; it is left alone.", "Run it again.")
    disk.write(before.path, text.encode("utf-8"))


def _text(path: Path) -> str:
    stored = disk.read(path)
    if stored.missing:
        raise InvalidDefinition(f"{path} is not there any more.")
    if len(stored.data) > LARGEST:
        raise InvalidDefinition(f"{path} has more than {LARGEST:,} bytes; it is left alone.")
    try:
        return stored.data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidDefinition(f"{path} is not UTF-8; it is left alone.") from None
