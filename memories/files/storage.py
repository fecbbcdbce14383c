"""Read and write an agent's file in the repository of its project: whole or not at all, and never outside of it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from claudeops.lib.files import HARD_LINK, replace_in
from claudeops.lib.locks import file_lock
from memories.capture.fields import agent_id
from memories.errors import MemoriesError
from memories.files import older
from memories.files.document import LONGEST, Document, parse
from memories.models import FileState, Project
from memories.models.project import is_obeyed

LOCKS = "agent-files"
"""The folder of the locks, in the data folder: nothing of ours but the files stands in a person's repository."""

SPELLING = re.compile(r"[^\s/.]+")
"""How a file may spell its agent: Claude Code writes hyphens, we write underscores, both write no blank."""

Names = Mapping[str, list[str]]

SEARCH = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
"""Open a folder to look for names in it, which needs no right to list them."""


class Unusable(MemoriesError):
    """The file cannot be read or written; `state` is what its row says then."""

    code = "agent_file"

    def __init__(self, state: FileState, message: str) -> None:
        super().__init__(message)
        self.state = state


@dataclass(frozen=True, slots=True)
class Stored:
    """The bytes of a file, and what the file system says of them. `missing`: there is no such file."""

    data: bytes = b""
    size: int = 0
    modified_ns: int = 0
    missing: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


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
        raise Unusable(FileState.UNREADABLE, f"{both_names} are files of one agent, {agent}: make one file of them.")
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
        raise Unusable(FileState.NO_REPOSITORY, f"Project {project.slug} has no repository path.")
    try:
        root = Path(project.path).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise Unusable(FileState.NO_REPOSITORY, f"{project.path}: {_words(error)}.") from None
    if not root.is_dir():
        raise Unusable(FileState.NO_REPOSITORY, f"{project.path} is not a folder.")
    wanted = root / relative
    try:
        path = wanted.resolve()
    except (OSError, RuntimeError) as error:
        raise Unusable(FileState.UNREADABLE, f"{wanted}: {_words(error)}.") from None
    if not path.is_relative_to(root):
        raise Unusable(FileState.UNREADABLE, f"{wanted} leads out of the repository, to {path}; it is not followed.")
    if not obeyed and is_obeyed(path.relative_to(root), root):
        raise Unusable(FileState.UNREADABLE, f"{path} is where programs obey what they read; it is left alone.")
    return path


@contextmanager
def _folder_of(path: Path, *, make: bool = False) -> Iterator[int]:
    """Open the folder of a resolved path, step by step and through no link: `location` looked a while ago."""
    descriptor = os.open(path.anchor, SEARCH)
    try:
        for name in path.parts[1:-1]:
            try:
                below = os.open(name, SEARCH | os.O_NOFOLLOW, dir_fd=descriptor)
            except FileNotFoundError:
                if not make:
                    raise
                with suppress(FileExistsError):  # another sync was faster
                    os.mkdir(name, dir_fd=descriptor)
                below = os.open(name, SEARCH | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def read(path: Path) -> Stored:
    """Read a file; at most LONGEST + 1 bytes, so that a larger one is noticed. Raises Unusable."""
    try:
        with _folder_of(path) as folder:
            # Not through a link, and never waiting for a pipe.
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Unusable(FileState.UNREADABLE, f"{path} is not a file.")
            if status.st_nlink > 1:
                raise Unusable(FileState.UNREADABLE, f"{path} {HARD_LINK}")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(LONGEST + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return Stored(missing=True)
    except OSError as error:
        raise Unusable(FileState.UNREADABLE, f"{path}: {_words(error)}.") from None
    return Stored(data, status.st_size, status.st_mtime_ns)


def read_document(path: Path) -> tuple[Stored, Document]:
    """Read a file and what it says. Raises Unusable, also for a content that cannot be read."""
    stored = read(path)
    return stored, checked(parse(stored.data), path)


def checked(document: Document, name: object, what: str = "read") -> Document:
    """Return a document that could be read. Raises Unusable."""
    if document.unreadable:
        state = FileState.CONFLICT if document.conflict else FileState.UNREADABLE
        raise Unusable(state, f"{name} cannot be {what}: {document.unreadable}.")
    return document


def look(path: Path) -> tuple[int, int] | None:
    """Return (size, modified in ns) of a file; None when it is missing, or cannot be looked at."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def write(path: Path, data: bytes) -> Stored:
    """Write a file whole: it has the new content afterwards, or the old one. Its mode stays. Raises Unusable."""
    try:
        with _folder_of(path, make=True) as folder:
            replace_in(folder, path.name, data, aside=f".{path.name[:100]}.claudeops")
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        raise Unusable(FileState.UNWRITABLE, f"{path}: {_words(error)}.") from None
    return Stored(data, status.st_size, status.st_mtime_ns)


def remove(path: Path) -> None:
    """Remove a file, which may be gone already. Raises Unusable."""
    try:
        with _folder_of(path) as folder:
            os.unlink(path.name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unusable(FileState.UNWRITABLE, f"{path}: {_words(error)}.") from None


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
        raise Unusable(FileState.UNREADABLE, f"{folder}: {_words(error)}.") from None


def locks_folder() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR) / LOCKS


def put_beside(project: Project, name: str, data: bytes) -> bool:
    """Write a file into the folder of agent files or below, unless something of its name is there. Raises Unusable."""
    path = inside(project, f"{project.files_folder}/{Path(name).parent}") / Path(name).name
    try:
        with _folder_of(path, make=True) as folder:
            # Never over a file or through a link.
            descriptor = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
    except FileExistsError:
        return False
    except OSError as error:
        raise Unusable(FileState.UNWRITABLE, f"{path}: {_words(error)}.") from None
    return True


@contextmanager
def lock_of(project_id: int, agent: str) -> Iterator[None]:
    """Wait for the one lock of a file on this host, and hold it. Not inside a transaction that writes memories."""
    with file_lock(locks_folder() / f"{project_id}-{agent}.lock", wait=True):
        yield


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
