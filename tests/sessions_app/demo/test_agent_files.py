"""The demo's shop: three agents whose memory files grow, and one conflict for its operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memories.files import conflicts
from memories.files.sync import sync_file, sync_project
from memories.models import AgentFile, AgentFileConflict, ConflictKind, Memory, Project
from sessions_app.demo.setup import set_up, shop_folder
from sessions_app.models import Agent, Session, Status, Trigger
from sessions_app.queue import request_session
from sessions_app.runner import run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

AGENTS = ("shop-research", "shop-engineer", "shop-qa")


@pytest.fixture
def shop(settings: Any, tmp_path: Path) -> Project:
    settings.CLAUDEOPS_REPLAY_SPEED = 0.0
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    set_up()
    return Project.objects.get(slug="tea-shop")


def runs(slug: str) -> Session:
    session = request_session(agent=Agent.objects.get(slug=slug), trigger=Trigger.MANUAL, by="operator")
    run.run_session(session.pk)
    session.refresh_from_db()
    assert session.status == Status.COMPLETED, session.status_reason
    return session


def file_of(agent: str) -> str:
    return (shop_folder() / ".claude-mpm" / "memories" / f"{agent}_agent.md").read_text()


def test_the_files_grow_with_the_runs_the_next_prompt_has_them_and_one_conflict_waits(shop: Project) -> None:
    for slug in AGENTS:
        runs(slug)
    sync_project(shop)
    assert "- Browser tests wait for the total, never for a time\n" in file_of("shop_qa")
    assert "- Payments reach the books through the outbox table alone\n" in file_of("shop_research")
    engineer = file_of("shop_engineer")
    assert "- Amounts of money are whole cents, never floats\n" in engineer
    assert Memory.objects.get(observation__startswith="Amounts of money").source == "human"
    assert not AgentFileConflict.objects.exists()

    second = runs("shop-engineer")
    assert "- Prices as floats lost cents in the invoices of March" in second.prompt
    assert "- The test suite takes 4 minutes with two workers" in second.prompt
    sync_file(shop, "shop-engineer")
    conflict = AgentFileConflict.objects.get()
    assert conflict.kind == ConflictKind.CONTRADICTED
    assert (conflict.file_text, conflict.other_text) == (
        "The test suite takes 4 minutes with two workers",
        "The test suite takes 9 minutes with two workers",
    )
    conflicts.answer(conflict, "other", by="operator")
    sync_file(shop, "shop-engineer")
    assert "9 minutes" in file_of("shop_engineer") and "4 minutes" not in file_of("shop_engineer")
    assert AgentFile.objects.filter(state="ok").count() == 3
