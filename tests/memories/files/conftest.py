"""A project with a repository on disk, and what a person and an agent do there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memories import store
from memories.capture.statement import Provenance, Statement
from memories.files import sync
from memories.models import Memory, Project
from tests.support.committers import trust_commits

OBEYED = (
    *(".claude/agents", ".claude", ".claude/hooks", ".claude/commands", ".claude/skills/x", ".CLAUDE/Agents"),
    *(".git/hooks", ".git", "docs/.Git/hooks", ".github/workflows", ".husky", "hooks", "docs/Hooks"),
    *(".claude/agent-memory/.git", ".claude/agent-memory-x", "./.claude/agents", ".vscode/x"),
)
"""Folders below a repository whose files tell git, Claude Code or others what to do."""


class Repository:
    """The repository of a project; `git` runs as Ada, with nothing of this machine's configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, agent: str = "research") -> Path:
        return self.path / ".claude-mpm" / "memories" / f"{agent}_agent.md"

    def text(self, agent: str = "research") -> str:
        return self.file(agent).read_bytes().decode()

    def save(self, text: str, agent: str = "research") -> None:
        """Save as an editor does, at a later time than the last save, however coarse the clock."""
        path = self.file(agent)
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.write_bytes(text.encode())
        if path.stat().st_mtime_ns <= before:
            os.utime(path, ns=(before + 1, before + 1))

    def change(self, old: str, new: str, agent: str = "research") -> None:
        text = self.text(agent)
        assert old in text
        self.save(text.replace(old, new), agent)

    def git(self, *arguments: str) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    def commit(self, message: str = "Note it") -> None:
        if not (self.path / ".git").exists():
            self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", message)


@pytest.fixture
def repository(tmp_path: Path, settings: object) -> Repository:
    settings.CLAUDEOPS_DATA_DIR = str(tmp_path / "data")  # type: ignore[attr-defined]
    (tmp_path / "shop").mkdir()
    return Repository(tmp_path / "shop")


@pytest.fixture
def project(db: None, repository: Repository) -> Project:
    """Its author's commits are her word."""
    shop = Project.objects.create(slug="shop", name="Shop", path=str(repository.path))
    trust_commits(shop, "ada@example.org")
    return shop


@pytest.fixture
def learn(project: Project) -> Callable[..., Memory]:
    """Let an agent learn something, as a session's statement."""

    def learn(text: str, category: str = "mistake", agent: str = "research") -> Memory:
        made = store.remember(
            Statement(category, text, taxonomy="agent"),
            Provenance("run", f"agent:{agent}", project_id=project.pk, agent=agent),
        )
        assert made.memory_id is not None, made
        return Memory.objects.get(pk=made.memory_id)

    return learn


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take each save for a finished one at once: those of half-finished saves are in test_sync."""
    monkeypatch.setattr(sync, "SETTLED_SECONDS", 0.0)
