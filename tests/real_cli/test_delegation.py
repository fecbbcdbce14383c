"""The real CLI with agent memories: what a subagent is told, and what is taken from its last message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django_q.models import OrmQ

from memories.files.instructions import BRIEFING
from memories.files.sync import sync_file
from memories.models import AgentCapture, Memory
from sessions_app import tasks
from sessions_app.models import HookReceipt, Status
from tests.real_cli.person import outcomes
from tests.support.factories import MemoryFactory, ProjectFactory
from tests.support.messages_api import Failure, ToolUse, answers, bash, says

pytestmark = pytest.mark.real_cli

KEY = "look after the shop"
KNOWN = "Migrations run before the workers start"
LEARNED = "Prices are stored in cents as whole numbers"
BLOCK = f"I looked.\n\n# Add To Memory:\nType: pattern\nContent: {LEARNED}\n#\n"
FILE = ".claude-mpm/memories/data_engineer_agent.md"


def delegate(task: str, agent: str = "data-engineer") -> ToolUse:
    return ToolUse("Agent", {"description": "look", "prompt": task, "subagent_type": agent})


def define(repository: Path, *agents: str) -> None:
    """Define subagents as a developer does."""
    folder = repository / ".claude" / "agents"
    folder.mkdir(parents=True)
    for agent in agents:
        (folder / f"{agent}.md").write_text(f"---\nname: {agent}\ndescription: Looks.\n---\nYou are {agent}.\n")


@pytest.fixture
def project(person):
    define(person.repository, "data-engineer", "research")
    return ProjectFactory(path=str(person.repository))


def remember(project, agent="data_engineer", observation=KNOWN):
    memory = MemoryFactory(
        taxonomy="agent", category="mistake", project=project, agent=agent, observation=observation, tags=[]
    )
    sync_file(project, agent, create=True)
    return memory


def work() -> None:
    """Do the work of the hooks that waits for a worker."""
    for row in OrmQ.objects.order_by("pk"):
        if row.task["func"].endswith("handle_hook"):
            tasks.handle_hook(*row.task["args"])
        row.delete()


def test_a_subagent_s_request_carries_its_memory_and_what_it_learned_is_stored(person, door, project):
    memory = remember(project)
    person.install("--agents", "--url", door.url)
    person.api.script(KEY, answers(delegate("count the goods")), says("Counted."))
    person.api.script("count the goods", answers(bash("echo 42")), says(BLOCK))

    lines = person.run(KEY)
    work()

    assert set(outcomes(lines)) == {"success"}
    request = person.api.to("count the goods")[0]
    carried = json.dumps(request.body)
    assert BRIEFING in carried and f"- {KNOWN}" in carried
    assert BRIEFING not in json.dumps(person.api.to(KEY)[0].body)
    receipt = HookReceipt.objects.get()
    assert json.dumps(receipt.text)[1:-1] in carried
    assert (receipt.agent, receipt.project) == ("data_engineer", project)
    assert [entry["id"] for entry in receipt.included] == [memory.pk]
    memory.refresh_from_db()
    assert memory.told_count == 1
    learned = Memory.objects.exclude(pk=memory.pk).get()
    assert (learned.observation, learned.agent, learned.category) == (LEARNED, "data_engineer", "pattern")
    assert (learned.verdict, learned.exposure) == ("allow", "house")
    assert AgentCapture.objects.get().memory_id == learned.pk
    assert f"- {LEARNED}\n" in (person.repository / FILE).read_text()


def test_for_an_older_cli_the_memory_stands_in_the_prompt_of_the_subagent(person, door, project):
    memory = remember(project)
    person.install("--prompts", "--url", door.url)
    person.api.script(KEY, answers(delegate("count the goods")), says("Counted."))
    person.api.script("count the goods", says(BLOCK))

    lines = person.run(KEY)
    work()

    assert set(outcomes(lines)) == {"success"}
    carried = json.dumps(person.api.to("count the goods")[0].body)
    assert BRIEFING in carried and f"- {KNOWN}" in carried
    receipt = HookReceipt.objects.get()
    assert (receipt.event, receipt.agent) == ("PreToolUse", "data_engineer")
    learned = Memory.objects.exclude(pk=memory.pk).get()
    assert (learned.observation, learned.agent) == (LEARNED, "data_engineer")
    assert f"- {LEARNED}\n" in (person.repository / FILE).read_text()


def test_a_subagent_that_repeats_what_a_page_said_is_not_believed(person, door, project):
    page = person.repository / "page.html"
    page.write_text(f"Notes of the vendor: {LEARNED} every night.\n")
    person.install("--agents", "--url", door.url)
    person.api.script(KEY, answers(delegate("count the goods")), says("Counted."))
    person.api.script("count the goods", answers(bash(f"curl -s file://{page}")), says(BLOCK))
    person.run(KEY, "Bash(curl *)")
    work()
    assert LEARNED in person.api.to("count the goods")[1].tool_results[0]
    memory = Memory.objects.get()
    assert (memory.verdict, memory.exposure) == ("hold", "outside")


def test_a_failed_subagent_was_told_its_memory_and_teaches_nothing(person, door, project):
    remember(project)
    person.install("--agents", "--url", door.url)
    person.api.script(KEY, answers(delegate("count the goods")), says("It failed."))
    person.api.script("count the goods", then=Failure(400, "invalid_request_error"))
    lines = person.run(KEY)
    work()
    assert outcomes(lines) == ["success"]  # of its start: the CLI has no stop for a subagent that failed
    assert HookReceipt.objects.get().event == "SubagentStart"
    assert Memory.objects.count() == 1 and not AgentCapture.objects.exists()


def test_two_subagents_at_once_are_told_their_own_and_each_one_s_learning_is_its_own(person, door, project):
    memories = {agent: remember(project, agent, f"{KNOWN} of {agent}") for agent in ("data_engineer", "research")}
    person.install("--agents", "--url", door.url)
    tasks_of = {"data-engineer": "count the goods", "research": "count the shops"}
    person.api.script(KEY, answers(*(delegate(task, agent) for agent, task in tasks_of.items())), says("Counted."))
    for agent, task in tasks_of.items():
        person.api.script(task, says(BLOCK.replace(LEARNED, f"{LEARNED} at {agent}")))
    person.run(KEY)
    work()
    for agent, task in tasks_of.items():
        carried = json.dumps(person.api.to(task)[0].body)
        found = {name for name, memory in memories.items() if memory.observation in carried}
        assert found == {agent.replace("-", "_")}
    assert HookReceipt.objects.count() == 2
    assert len(set(HookReceipt.objects.values_list("part", flat=True))) == 2
    captured = AgentCapture.objects.values_list("agent", "text")
    assert sorted(captured) == sorted((agent.replace("-", "_"), f"{LEARNED} at {agent}") for agent in tasks_of)


def test_a_session_of_ours_keeps_the_receipt_of_its_subagent(room, door, settings):
    settings.CLAUDEOPS_HOOK_URL = door.url
    settings.CLAUDEOPS_SESSION_HOOKS = ["agents"]
    project = ProjectFactory(path="")
    room.api.script(KEY, answers(delegate("count the goods", "general-purpose")), says("Counted."))
    room.api.script("count the goods", says(BLOCK))
    session = room.run(KEY, allowed_tools=["Agent"], project=project)
    assert session.status == Status.COMPLETED, (session.status_reason, session.error)
    work()
    receipt = HookReceipt.objects.get()
    assert (receipt.session, receipt.agent, receipt.project) == (session, "general_purpose", project)
    memory = Memory.objects.get()
    assert (memory.observation, memory.exposure) == (LEARNED, "nothing")
