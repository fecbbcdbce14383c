"""`manage.py agent-memory instructions`: printed, put into an agent's definition, and taken out again."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from memories.files.definition import InvalidDefinition, definition_of, replace
from memories.files.sync import sync_file
from memories.models import AgentFile, Memory, Project
from tests.memories.files.conftest import Repository, learn, project, repository

__all__ = ["learn", "project", "repository"]

from tests.support import commands

pytestmark = pytest.mark.django_db(transaction=True)
QUEUE = "Tests need the queue"
DEFINITION = "---\r\nname: research\r\n---\r\n\r\nYou look things up.\r\n"


run = partial(commands.run, "agent-memory", "instructions", "--project", "shop")


def define(repository: Repository, name: str = "research.md", text: str = DEFINITION) -> Path:
    path = repository.path / ".claude" / "agents" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.fixture
def known(project: Project, learn: Callable[..., Memory]) -> Project:
    learn(QUEUE)
    sync_file(project, "research", create=True)
    return project


def test_they_are_the_definition_s_body_the_protocol_and_the_memory(known: Project, repository: Repository) -> None:
    define(repository)
    code, out, _ = run("research-agent")
    assert code == 0 and out.startswith("You look things up.") and "name: research" not in out
    places = [out.index(part) for part in ("# Add To Memory:", "## PROJECT-SPECIFIC MEMORY", f"- {QUEUE}")]
    assert places == sorted(places)


def test_an_agent_without_a_definition_or_a_memory_has_instructions_too(project: Project, tmp_path: Path) -> None:
    base = tmp_path / "base.md"
    base.write_text("You count.\n")
    code, out, _ = run("qa", "--base", str(base), "--json")
    text = json.loads(out)["result"]["text"]
    assert code == 0 and text.startswith("You count.\n") and "(Nothing is known yet.)" in text
    assert run("qa")[1].startswith("## Agent Memory")
    assert not AgentFile.objects.exists()


def test_what_a_person_just_saved_is_in_them(known: Project, repository: Repository) -> None:
    repository.commit()
    repository.change(QUEUE, "Tests need the queue and the clock")
    repository.commit()
    assert "- Tests need the queue and the clock" in run("research")[1]


@pytest.mark.parametrize("name", ["research.md", "research-agent.md", "research_agent.md", "Research.md"])
def test_they_are_written_between_markers_and_taken_out_again(
    known: Project, repository: Repository, name: str
) -> None:
    path = define(repository, name)
    path.chmod(0o640)
    code, out, err = run("research", "--write", "--yes")
    assert (code, out) == (0, f"{path} is written.\n")
    assert f"+- {QUEUE}" in err and "-You look" not in err
    text = path.read_bytes().decode()
    assert text.startswith(DEFINITION) and f"- {QUEUE}\r\n" in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert run("research", "--write", "--yes")[1] == f"{path} is like this already.\n"
    assert run("research", "--remove", "--yes")[0] == 0
    assert path.read_bytes().decode() == DEFINITION


def test_without_an_answer_nothing_is_written(known: Project, repository: Repository) -> None:
    path = define(repository)
    code, _, err = run("research", "--write")
    assert code == 1 and "--yes" in err
    code, out, _ = run("research", "--write", "--dry-run")
    assert code == 0 and f"+- {QUEUE}" in out and "Nothing was changed" in out
    assert path.read_bytes().decode() == DEFINITION


def test_a_definition_that_is_a_link_out_of_the_repository_is_left_alone(
    known: Project, repository: Repository, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere.md").write_text(DEFINITION)
    define(repository).unlink()
    (repository.path / ".claude" / "agents" / "research.md").symlink_to(tmp_path / "elsewhere.md")
    code, _, err = run("research", "--write", "--yes")
    assert code == 1 and "leads out of the repository" in err
    assert "PROJECT-SPECIFIC" not in (tmp_path / "elsewhere.md").read_text()


def test_a_definition_that_changed_meanwhile_is_left_alone(known: Project, repository: Repository) -> None:
    path = define(repository)
    found = definition_of(known, "research")
    path.write_text("Other.\n")
    assert found is not None
    with pytest.raises(InvalidDefinition, match="changed meanwhile"):
        replace(found, "Ours.\n")
    assert path.read_text() == "Other.\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "research has no definition in .claude/agents"),
        ({"research.md": b"x", "research-agent.md": b"x"}, "several definitions"),
        ({"research.md": b"\xff"}, "not UTF-8"),
        ({"research.md": b"x" * 5_300_000}, "more than"),
    ],
)
def test_what_is_wrong_with_a_definition_is_said(
    known: Project, repository: Repository, files: dict[str, bytes], said: str
) -> None:
    for name, data in files.items():
        define(repository, name).write_bytes(data)
    code, _, err = run("research", "--write", "--yes")
    assert code == 1 and said in err


def test_an_agent_that_is_off_is_not_written_and_can_be_taken_out(known: Project, repository: Repository) -> None:
    path = define(repository)
    run("research", "--write", "--yes")
    AgentFile.objects.update(enabled=False)
    for arguments in (["--write", "--yes"], []):
        code, _, err = run("research", *arguments)
        assert code == 1 and "switched off" in err
    assert run("research", "--remove", "--yes")[0] == 0
    assert path.read_bytes().decode() == DEFINITION


def test_a_project_without_a_repository_has_no_definitions(project: Project) -> None:
    Project.objects.update(path="")
    assert run("research")[0] == 0
    code, _, err = run("research", "--write", "--yes")
    assert code == 1 and "no repository path" in err
