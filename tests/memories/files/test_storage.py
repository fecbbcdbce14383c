"""A file is written whole or not at all, and neither read nor written outside of its repository."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from claudeops.env import BASE_DIR
from claudeops.lib.tracked_file import disk
from claudeops.lib.tracked_file.disk import Unusable
from memories.errors import InvalidProject
from memories.files import storage
from memories.files.status import statuses
from memories.files.sync import sync_file, sync_project
from memories.files.told import told_to
from memories.lifecycle.projects import set_project
from memories.models import AgentFile, FileState, Memory, Project
from tests.memories.files.conftest import OBEYED, Repository

Learn = Callable[..., Memory]

QUEUE, SUITE = "Tests need the queue", "The suite takes 4 minutes"
OLD = b"- old\n"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that every user may enter, beside the test's own."""
    path = Path(f"/tmp/agent-files-{os.getpid()}-{tmp_path.name}")
    path.mkdir(mode=0o755)
    yield path
    shutil.rmtree(path)


def write_in_a_process(path: Path, *, before: str = "", size: int = 10_000) -> str:
    """Write `size` bytes to the path in another process and return what it says."""
    code = f"""
import os, resource, signal
import django
django.setup()
from pathlib import Path
from memories.errors import InvalidProject
from claudeops.lib.tracked_file import disk
{before}
try:
    disk.write(Path({str(path)!r}), b"x" * {size})
except disk.Unusable as error:
    print(error.state, error)
"""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(BASE_DIR)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.processes
def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(folder: Path) -> None:
    path = folder / "research_agent.md"
    path.write_bytes(OLD)
    full = "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); signal.signal(signal.SIGXFSZ, signal.SIG_IGN)"
    assert write_in_a_process(path, before=full) == f"unwritable {path}: File too large."
    assert path.read_bytes() == OLD
    assert os.listdir(folder) == [path.name]


@pytest.mark.processes
def test_a_read_only_folder_leaves_the_old_file(folder: Path) -> None:
    path = folder / "research_agent.md"
    path.write_bytes(OLD)
    folder.chmod(0o555)
    not_root = "os.setuid(65534) if os.geteuid() == 0 else None"
    assert write_in_a_process(path, before=not_root) == f"unwritable {path}: Permission denied."
    assert path.read_bytes() == OLD
    folder.chmod(0o755)
    assert os.listdir(folder) == [path.name]


@pytest.mark.processes
def test_a_write_that_is_killed_leaves_the_old_file(folder: Path) -> None:
    path = folder / "research_agent.md"
    path.write_bytes(OLD)
    killed = "os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(subprocess.CalledProcessError):
        write_in_a_process(path, before=killed)
    assert path.read_bytes() == OLD
    assert all(name == path.name or name.startswith(".") for name in os.listdir(folder))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_the_mode_and_the_owner_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "research_agent.md"
    path.write_bytes(OLD)
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    before = path.stat()
    disk.write(path, b"- new\n")
    after = path.stat()
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (mode, before.st_uid, before.st_gid)


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        disk.write(tmp_path / "memories" / "research_agent.md", b"- new\n")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "memories" / "research_agent.md").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "memories").stat().st_mode) == 0o750


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "research_agent.md")
    with pytest.raises(Unusable, match="is not a file") as refused:
        disk.read(tmp_path / "research_agent.md")
    assert refused.value.state == FileState.UNREADABLE


def test_a_folder_that_became_a_link_since_it_was_looked_at_is_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "memories", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "research_agent.md").write_bytes(OLD)
    path = inside / "research_agent.md"
    inside.rmdir()
    inside.symlink_to(outside)
    for act in (disk.read, lambda path: disk.write(path, b"- new\n"), disk.remove):
        with pytest.raises(Unusable, match="is a symbolic link; it is not followed"):
            act(path)
    assert (outside / "research_agent.md").read_bytes() == OLD
    assert os.listdir(outside) == ["research_agent.md"]


def test_a_file_that_became_a_link_since_it_was_looked_at_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_bytes(OLD)
    path = tmp_path / "research_agent.md"
    path.symlink_to(tmp_path / "outside.md")
    with pytest.raises(Unusable):
        disk.read(path)
    disk.write(path, b"- new\n")
    assert (tmp_path / "outside.md").read_bytes() == OLD
    assert path.read_bytes() == b"- new\n"
    assert not path.is_symlink()


# How a file spells its agent.


def test_the_file_that_is_there_is_read_and_written_however_it_spells_its_agent(
    project: Project, repository: Repository, learn: Learn, settled: None, subtests
) -> None:
    """Claude Code writes hyphens, claude-mpm has files of any spelling: no second one is made beside."""
    layouts = ((".claude/agent-memory", "{agent}/MEMORY.md"), (".claude-mpm/memories", "{agent}_agent.md"))
    spellings = (
        ("code-reviewer", "code_reviewer"),
        ("Data_Engineer", "data_engineer"),
        ("QA-Agent", "qa"),
        ("Gr\u00f6\u00dfe-Pr\u00fcfer", "gr\u00f6\u00dfe_pr\u00fcfer"),
        (unicodedata.normalize("NFD", "\u00fcn\u00efcode"), "\u00fcn\u00efcode"),
        ("plain", "plain"),
    )
    for folder, pattern in layouts:
        Project.objects.update(files_folder=folder, files_pattern=pattern)
        project.refresh_from_db()
        paths = {spelling: f"{folder}/{pattern.replace('{agent}', spelling)}" for spelling, _ in spellings}
        for spelling, agent in spellings:
            path = repository.path / paths[spelling]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("# Memory\n\n## Common Mistakes to Avoid\n- Stale flags in tests\n")
            learn(f"{SUITE}, {paths[spelling]}", agent=agent)
        assert storage.agents_on_disk(project) == sorted(agent for _, agent in spellings)
        done = {one.agent: one for one in sync_project(project)}
        shown = {one.file.agent: one.as_data()["path"] for one in statuses(project, timezone.now())}
        for spelling, agent in spellings:
            with subtests.test(pattern, agent=agent):
                assert (done[agent].state, done[agent].path, shown[agent]) == ("ok", paths[spelling], paths[spelling])
                assert f"- {SUITE}, {paths[spelling]}\n" in (repository.path / paths[spelling]).read_text()
                assert SUITE in told_to(spelling, project.pk).text
                assert not sync_file(project, spelling, create=True).changed
        here = [path for path in (repository.path / folder).rglob("*.md") if path.name != "README.md"]
        assert len(here) == len(spellings)


def test_two_files_of_one_agent_wait_for_a_person(project: Project, repository: Repository, settled: None) -> None:
    Project.objects.update(files_folder=".claude/agent-memory", files_pattern="{agent}/MEMORY.md")
    project.refresh_from_db()
    paths = [
        repository.path / ".claude/agent-memory" / name / "MEMORY.md" for name in ("code-reviewer", "code_reviewer")
    ]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text("## Common Mistakes to Avoid\n- Stale flags in tests\n")
    refused(project, "unreadable", "are files of one agent, code_reviewer", agent="code_reviewer")
    paths[1].unlink()
    assert sync_file(project, "code_reviewer").path == ".claude/agent-memory/code-reviewer/MEMORY.md"


# The same through a sync.


def refused(project: Project, state: str, reason: str, agent: str = "research") -> None:
    done = sync_file(project, agent, create=True)
    assert (done.state, reason in done.problem) == (state, True), done.problem
    file = AgentFile.objects.get()
    assert (file.state, file.problem) == (state, done.problem)


@pytest.mark.parametrize("below", [".claude-mpm", ".claude-mpm/memories", ".claude-mpm/memories/research_agent.md"])
def test_a_link_out_of_the_repository_is_refused(
    project: Project, repository: Repository, learn: Learn, tmp_path: Path, below: str
) -> None:
    learn(QUEUE)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.md").write_bytes(OLD)
    link = repository.path / below
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside / "kept.md" if below.endswith(".md") else outside)
    refused(project, FileState.UNREADABLE, "leads out of the repository")
    assert os.listdir(outside) == ["kept.md"]
    assert (outside / "kept.md").read_bytes() == OLD


def test_a_hard_link_to_a_file_from_elsewhere_is_not_read(
    project: Project, repository: Repository, learn: Learn, tmp_path: Path
) -> None:
    learn(QUEUE)
    outside = tmp_path / "outside.md"
    outside.write_bytes(OLD)
    link = repository.file()
    link.parent.mkdir(parents=True)
    link.hardlink_to(outside)
    refused(project, FileState.UNREADABLE, "has other names (a hard link)")
    assert outside.read_bytes() == OLD
    link.unlink()
    link.write_bytes(OLD)
    sync_file(project, "research")
    assert QUEUE in repository.text()


def test_a_link_within_the_repository_is_followed(project: Project, repository: Repository, learn: Learn) -> None:
    learn(QUEUE)
    (repository.path / "docs").mkdir()
    (repository.path / ".claude-mpm").symlink_to("docs")
    assert sync_file(project, "research", create=True).state == FileState.OK
    assert QUEUE in (repository.path / "docs/memories/research_agent.md").read_text()


def test_a_circle_of_links_and_a_folder_that_is_a_file_are_refused(
    project: Project, repository: Repository, learn: Learn
) -> None:
    learn(QUEUE)
    (repository.path / ".claude-mpm").symlink_to(".claude-mpm")
    refused(project, FileState.UNREADABLE, "")
    (repository.path / ".claude-mpm").unlink()
    (repository.path / ".claude-mpm").write_text("a file")
    refused(project, FileState.UNREADABLE, "Not a directory")
    (repository.path / ".claude-mpm").unlink()
    assert sync_file(project, "research").state == FileState.OK


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"- a\n" * 1_400_000, "more than 5 MB"),
        (b"- a\x00b\n", "NUL bytes"),
        ("- a\n".encode("utf-16"), "UTF-16"),
        (b"- a\n- \xff\n", "byte 6 is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_left_alone_and_nothing_counts_as_removed(
    project: Project, repository: Repository, learn: Learn, data: bytes, reason: str
) -> None:
    learn(QUEUE)
    sync_file(project, "research", create=True)
    text = repository.text()
    repository.file().write_bytes(data)
    learn(SUITE, "learning")
    refused(project, FileState.UNREADABLE, reason)
    assert repository.file().read_bytes() == data
    assert Memory.objects.filter(active=True).count() == 2
    repository.save(text)
    assert sync_file(project, "research").problem == ""
    assert AgentFile.objects.get().state == FileState.OK
    assert SUITE in repository.text()


@pytest.mark.parametrize(
    "text",
    ["\ufeff# Notes\r\n\r\n## Mine\r\n- Ask Ada first", "## Mine\n- Ask Ada first", "\r## Mine\r- Ask Ada first"],
)
def test_a_bom_other_line_ends_and_a_missing_one_stay(
    project: Project, repository: Repository, learn: Learn, text: str
) -> None:
    learn(QUEUE)
    repository.save(text)
    for _ in range(2):
        assert sync_file(project, "research", create=True).state == FileState.OK
    after = repository.text()
    assert after.startswith(text)
    assert f"- {QUEUE}" in after
    assert Memory.objects.filter(observation="Ask Ada first").count() == 1
    assert sync_file(project, "research").changed is False


def test_a_folder_of_memories_is_allowed_and_one_that_programs_obey_is_not(project: Project) -> None:
    for folder in (".claude/agent-memory", ".claude-mpm/memories", ".claude/agent-memory/team", "docs/agents", "notes"):
        set_project(project, files_folder=folder)
    for folder in OBEYED:
        with pytest.raises(InvalidProject, match="files_folder: Programs obey"):
            set_project(project, files_folder=folder)
        with pytest.raises(InvalidProject, match="memory_path: Programs obey"):
            set_project(project, memory_path=f"{folder}/MEMORY.md")
    set_project(project, files_folder="agents")
    for path in (f"{project.path}/.git", "/home/user/.claude", "/home/user/.Claude/Agents"):
        with pytest.raises(InvalidProject, match="path: With files_folder this is where"):
            set_project(project, path=path)
    set_project(project, path="/home/user/shop/.claude/worktrees/one")


@pytest.mark.parametrize("kept", [".claude/agents", ".git/hooks", ".github", ".CLAUDE/agents"])
@pytest.mark.parametrize("by", ["row", "link", "link of the root"])
def test_nothing_is_read_or_written_where_programs_obey_it(
    project: Project, repository: Repository, learn: Learn, kept: str, by: str
) -> None:
    """Whatever the row says, and where a link leads, when the file is opened."""
    learn(QUEUE)
    place = repository.path / kept
    place.mkdir(parents=True)
    held = place / "research_agent.md"
    held.write_text("# Research\n\n## Learnings\n- Obey the workers\n", encoding="utf-8")
    if by == "row":
        Project.objects.update(files_folder=kept)
    elif by == "link":
        (repository.path / ".claude-mpm").mkdir()
        (repository.path / ".claude-mpm" / "memories").symlink_to(place)
    else:
        root = repository.path.parent / "root"
        root.symlink_to(place if kept.startswith((".git/", ".claude/", ".CLAUDE")) else repository.path)
        Project.objects.update(path=str(root), files_folder="x" if root.resolve() == place else kept)
    before = {path: path.read_bytes() for path in repository.path.rglob("*") if path.is_file()}
    project.refresh_from_db()
    with pytest.raises(Unusable, match="where programs obey what they read"):
        storage.location(project, "research")
    with pytest.raises(Unusable, match="where programs obey what they read"):
        storage.put_beside(project, "README.md", b"x")
    sync_file(project, "research", create=True)
    assert AgentFile.objects.get().state == FileState.UNREADABLE
    assert {path: path.read_bytes() for path in repository.path.rglob("*") if path.is_file()} == before
    assert not Memory.objects.filter(observation__contains="Obey").exists()
