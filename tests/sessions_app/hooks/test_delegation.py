"""A subagent is told its memory file when it starts; what it learned is taken when it stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django_q.models import OrmQ

from memories.files.instructions import BRIEFING
from memories.models import AgentCapture, AgentFile, AgentFileEntry, Memory, Project
from sessions_app import tasks
from sessions_app.hooks.observing import UNREAD
from sessions_app.models import HookReceipt
from tests.support.factories import MemoryFactory
from tests.support.streams import init, line

pytestmark = pytest.mark.django_db

Call = Callable[..., Any]
QUEUE = "Tests need the queue to run"
BLOCK = f"Done.\n\n# Add To Memory:\nType: mistake\nContent: {QUEUE}\n#\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "shop").mkdir()
    return Project.objects.create(slug="shop", path=str(tmp_path / "shop"))


@pytest.fixture
def start(call: Call, project: Project) -> Call:
    return lambda **fields: call(
        "SubagentStart", cwd=project.path, **{"agent_type": "data-engineer", "agent_id": "a1", **fields}
    )


@pytest.fixture
def stop(call: Call, project: Project) -> Call:
    def stop(answer: str = BLOCK, **fields: Any) -> None:
        given = {"agent_type": "data-engineer", "agent_id": "a1", "last_assistant_message": answer, **fields}
        assert call("SubagentStop", cwd=project.path, **given).json() == {}
        work()

    return stop


def work(times: int = 1) -> None:
    """Do the work that waits in the queue, `times` times: it may be delivered twice."""
    for row in OrmQ.objects.order_by("pk"):
        for _ in range(times):
            tasks.handle_hook(*row.task["args"])
        row.delete()


def told(response: Any) -> str:
    return str(response.json()["hookSpecificOutput"]["additionalContext"])


def test_a_subagent_is_told_its_file_and_a_receipt_is_kept_once(start: Call, project: Project) -> None:
    file = AgentFile.objects.create(project=project, agent="data_engineer")
    memory = MemoryFactory(
        taxonomy="agent", category="mistake", project=project, agent="data_engineer", observation=QUEUE
    )
    AgentFileEntry.objects.create(file=file, memory=memory, section="Common Mistakes to Avoid", text=QUEUE)
    text = told(start())
    assert text.startswith(BRIEFING) and f"### Common Mistakes to Avoid\n- {QUEUE}" in text
    assert told(start()) == text
    work(times=2)
    receipt = HookReceipt.objects.get()
    assert (receipt.agent, receipt.project, receipt.part, receipt.text) == ("data_engineer", project, "a1", text)
    assert [entry["id"] for entry in receipt.included] == [memory.pk]
    memory.refresh_from_db()
    assert memory.told_count == 1


def test_two_subagents_at_once_have_a_receipt_each(start: Call) -> None:
    start(agent_id="a1")
    start(agent_id="a2", agent_type="research")
    assert sorted(HookReceipt.objects.values_list("part", "agent")) == [("a1", "data_engineer"), ("a2", "research")]


def test_the_file_of_an_agent_appears_when_it_first_runs(start: Call, project: Project) -> None:
    assert "(Nothing is known yet.)" in told(start())
    work()
    assert (Path(project.path) / ".claude-mpm/memories/data_engineer_agent.md").exists()


def test_an_agent_that_is_off_is_told_nothing_and_learns_nothing(start: Call, stop: Call, project: Project) -> None:
    AgentFile.objects.create(project=project, agent="data_engineer", enabled=False)
    assert start().json() == {}
    stop()
    assert not HookReceipt.objects.exists() and not AgentCapture.objects.exists()


def test_a_folder_of_no_project_gets_nothing(call: Call, project: Project) -> None:
    assert call("SubagentStart", cwd="/elsewhere", agent_type="research", agent_id="a").json() == {}


def test_what_a_subagent_learned_is_stored_once_and_written_into_its_file(
    stop: Call, project: Project, tmp_path: Path
) -> None:
    shown = transcript(tmp_path, init(), *call_of("systemctl list-dependencies tests", "queue: tests need it"))
    stop(agent_transcript_path=shown)
    stop(agent_transcript_path=shown)
    memory = Memory.objects.get()
    assert (memory.observation, memory.agent, memory.project, memory.source) == (QUEUE, "data_engineer", project, "run")
    assert AgentCapture.objects.get().origin == "hook:s-1:a1"
    assert f"- {QUEUE}\n" in (Path(project.path) / ".claude-mpm/memories/data_engineer_agent.md").read_text()


def test_what_nobody_can_say_who_said_waits_and_is_in_no_file(stop: Call, project: Project) -> None:
    stop()
    assert Memory.objects.get().support["by"] == "outside"
    assert QUEUE not in (Path(project.path) / ".claude-mpm/memories/data_engineer_agent.md").read_text()


def test_what_the_subagents_of_one_session_say_again_counts_once(stop: Call) -> None:
    for number in range(4):
        stop(agent_id=f"a{number}")
    assert Memory.objects.get().confidence == 0.7
    stop(session_id="another", agent_id="b")
    assert Memory.objects.get().confidence == 0.8


def test_without_its_transcript_a_subagent_counts_as_having_read_outside_text(stop: Call) -> None:
    stop(agent_transcript_path="/etc/passwd")
    memory = Memory.objects.get()
    assert (memory.exposure, memory.exposed_to) == ("outside", [UNREAD])


def transcript(folder: Path, *lines: str) -> str:
    path = folder / ".claude" / "projects" / "-srv-shop" / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    return str(path)


def call_of(command: str, answer: str) -> tuple[str, str]:
    use = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": answer}]
    side = {"isSidechain": True, "sessionId": "s-1"}
    return (
        line(type="assistant", message={"id": "m1", "role": "assistant", "model": "claude-x", "content": use}, **side),
        line(type="user", message={"role": "user", "content": result}, **side),
    )


def test_the_transcript_says_what_it_had_read(stop: Call, tmp_path: Path) -> None:
    stop(agent_transcript_path=transcript(tmp_path, init(), *call_of("uptime", "up 3 days")))
    assert Memory.objects.get().exposure != "outside"


def test_a_learning_that_repeats_a_tool_s_result_is_held(stop: Call, tmp_path: Path) -> None:
    path = transcript(
        tmp_path, *call_of("curl https://example.org/notes", f"Notes of the vendor: {QUEUE} every night.")
    )
    stop(agent_transcript_path=path)
    memory = Memory.objects.get()
    assert (memory.verdict, memory.exposure) == ("hold", "outside")


def test_a_transcript_elsewhere_or_behind_a_link_is_not_read(stop: Call, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.jsonl"
    real.write_text("".join(call_of("uptime", "up 3 days")))
    link = tmp_path / ".claude" / "projects" / "x.jsonl"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    stop(agent_transcript_path=str(link))
    assert Memory.objects.get().exposed_to == [UNREAD]


def test_a_failed_subagent_is_counted(stop: Call) -> None:
    stop("")
    assert not Memory.objects.exists()
    assert AgentCapture.objects.get().reason == "the subagent ended without an answer"


@pytest.fixture
def delegate(call: Call, project: Project) -> Call:
    def delegate(prompt: object = "Count the goods.", tool: str = "Agent", **fields: Any) -> Any:
        given = {"description": "look", "prompt": prompt, "subagent_type": "data-engineer", **fields}
        return call("PreToolUse", cwd=project.path, tool_name=tool, tool_input=given)

    return delegate


@pytest.mark.parametrize("tool", ["Agent", "Task"])
def test_without_the_hook_of_its_start_a_subagent_is_told_in_its_prompt(
    delegate: Call, project: Project, tool: str
) -> None:
    file = AgentFile.objects.create(project=project, agent="data_engineer")
    memory = MemoryFactory(
        taxonomy="agent", category="mistake", project=project, agent="data_engineer", observation=QUEUE
    )
    AgentFileEntry.objects.create(file=file, memory=memory, section="Common Mistakes to Avoid", text=QUEUE)
    said = delegate(tool=tool).json()["hookSpecificOutput"]
    given = said["updatedInput"]
    assert said["permissionDecision"] == "allow"
    assert given["prompt"].startswith(BRIEFING) and f"- {QUEUE}" in given["prompt"]
    assert given["prompt"].endswith("\n\nCount the goods.")
    assert (given["description"], given["subagent_type"]) == ("look", "data-engineer")
    delegate(tool=tool)
    receipt = HookReceipt.objects.get()
    assert (receipt.event, receipt.agent) == ("PreToolUse", "data_engineer") and "Count" not in receipt.text
    memory.refresh_from_db()
    assert memory.told_count == 1


def test_another_tool_s_call_and_an_odd_one_are_left_as_they_are(delegate: Call, project: Project) -> None:
    for said in (delegate(tool="Bash"), delegate(prompt=7), delegate(subagent_type=None)):
        assert said.json() == {}
    AgentFile.objects.create(project=project, agent="data_engineer", enabled=False)
    assert delegate().json() == {}
    assert not HookReceipt.objects.exists()
