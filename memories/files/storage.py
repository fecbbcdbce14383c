"""Read and write an agent's file in the repository of its project: whole or not at all, and never outside of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from claudeops.lib.locks import file_lock
from claudeops.lib.tracked_file import disk
from claudeops.lib.tracked_file.disk import Problem, Stored, Unusable, words
from memories.capture.fields import agent_id
from memories.files import older
from memories.files.document import Document, parse
from memories.models import Project
from memories.models.project import is_obeyed

LOCKS = "agent-files"
"""The folder of the locks, in the data folder: nothing of ours but the files stands in a person's repository."""

SPELLING = re.compile(r"[^\s/.]+")
"""How a file may spell its agent: Claude Code writes hyphens, we write underscores, both write no blank."""

Names = Mapping[str, list[str]]


def relative_path(project: Project, agent: str, names: Names | None = None) -> str:
    return f"{project.files_folder.rstrip('/')}/{relative_to_folder(project, agent, names)}"


def relative_to_folder(project: Project, agent: str, names: Names | None = None) -> str:
    """Return the name of an agent's file: of the one that is there, however it spells the agent, else by its id.

    `names` are those of `names_by_agent`, for whoever looks at many files.
    """
    own = project.files_pattern.replace("{agent}", agent)
    try:
        names = names_by_agent(project) if names is None else names
    except Unusable:  # whoever reads or writes it says so
        return own
    return min(names.get(agent, [own]), key=lambda name: (name != own, name))


def location(project: Project, agent: str, names: Names | None = None) -> Path:
    """Return where the file of an agent is, or would be. Raises Unusable, also for two files of one agent.

    A symbolic link is followed within the repository; one that leads out of it is refused.
    """
    names = names_by_agent(project) if names is None else names
    if len(both := names.get(agent, [])) > 1:
        both_names = " and ".join(sorted(both))
        raise Unusable(f"{both_names} are files of one agent, {agent}: make one file of them.")
    return inside(project, relative_path(project, agent, names))


def names_by_agent(project: Project) -> dict[str, list[str]]:
    """Return the files in the folder that have the pattern's name, by agent, however they spell it. Raises Unusable."""
    folder = inside(project, project.files_folder)
    before, _, behind = project.files_pattern.partition("{agent}")
    names: dict[str, list[str]] = {}
    for path in folder.glob(f"{before}*{behind}"):
        relative = path.relative_to(folder).as_posix()
        name = unicodedata.normalize("NFC", relative.removeprefix(before).removesuffix(behind))
        agent = agent_id(name) if SPELLING.fullmatch(name) else ""
        if agent and agent not in older.NO_AGENTS:
            names.setdefault(agent, []).append(relative)
    return names


def inside(project: Project, relative: str, *, obeyed: bool = False) -> Path:
    """Return the real path of what `relative` names in the project's repository. Raises Unusable.

    Also where programs obey what they read, unless a person asks for a file that is meant to be `obeyed`.
    """
    if not project.path:
        raise Unusable(f"Project {project.slug} has no repository path.", state=Problem.NO_REPOSITORY)
    try:
        root = Path(project.path).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise Unusable(f"{project.path}: {words(error)}.", state=Problem.NO_REPOSITORY) from None
    if not root.is_dir():
        raise Unusable(f"{project.path} is not a folder.", state=Problem.NO_REPOSITORY)
    wanted = root / relative
    try:
        path = wanted.resolve()
    except (OSError, RuntimeError) as error:
        raise Unusable(f"{wanted}: {words(error)}.") from None
    if not path.is_relative_to(root):
        raise Unusable(f"{wanted} leads out of the repository, to {path}; it is not followed.")
    if not obeyed and is_obeyed(path.relative_to(root), root):
        raise Unusable(f"{path} is where programs obey what they read; it is left alone.")
    return path


def read_document(path: Path) -> tuple[Stored, Document]:
    """Read a file and what it says. Raises Unusable, also for a content that cannot be read."""
    stored = disk.read(path)
    return stored, checked(parse(stored.data), path)


def checked(document: Document, name: object, what: str = "read") -> Document:
    """Return a document that could be read. Raises Unusable."""
    if document.unreadable:
        state = Problem.CONFLICT if document.conflict else Problem.UNREADABLE
        raise Unusable(f"{name} cannot be {what}: {document.unreadable}.", state=state)
    return document


def look(path: Path) -> tuple[int, int] | None:
    """Return (size, modified in ns) of a file; None when it is missing, or cannot be looked at."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def older_files(project: Project, agent: str) -> list[tuple[str, Path]]:
    """Return the files of an agent in the folder that have older names, with where they are. Raises Unusable."""
    folder = inside(project, project.files_folder)
    present = relative_to_folder(project, agent)
    names = [name for name in _names(folder) if name != present and older.agent_of(name)[0] == agent]
    return [(name, inside(project, f"{project.files_folder}/{name}")) for name in names]


def older_names(project: Project) -> list[tuple[str, str]]:
    """Return the files in the folder that have older names, with the agent each would be of. Raises Unusable."""
    candidates = [(name, older.agent_of(name)[0]) for name in _names(inside(project, project.files_folder))]
    present = {name for names in names_by_agent(project).values() for name in names}
    return [(name, agent) for name, agent in candidates if agent and name not in present]


def agents_on_disk(project: Project) -> list[str]:
    """Return the agents that have a file in the folder, of a present or an older name that says so. Raises Unusable."""
    older_ones = map(older.agent_of, _names(inside(project, project.files_folder)))
    return sorted({*names_by_agent(project), *(agent for agent, sure in older_ones if agent and sure)})


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir() if path.is_file())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unusable(f"{folder}: {words(error)}.") from None


def locks_folder() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR) / LOCKS


def put_beside(project: Project, name: str, data: bytes) -> bool:
    """Write a file into the folder of agent files or below, unless something of its name is there. Raises Unusable."""
    return disk.create(inside(project, f"{project.files_folder}/{Path(name).parent}") / Path(name).name, data)


@contextmanager
def lock_of(project_id: int, agent: str) -> Iterator[None]:
    """Wait for the one lock of a file on this host, and hold it. Not inside a transaction that writes memories."""
    with file_lock(locks_folder() / f"{project_id}-{agent}.lock", wait=True):
        yield
