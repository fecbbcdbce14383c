"""The story of a session, with recorded streams played by a real process."""

from __future__ import annotations

import json
import threading

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.utils import timezone

from memories.models import Memory
from sessions_app import queue, reaper
from sessions_app.models import Event, Injected, InjectionReceipt, LogEntry, Runner, Session, Status, Trigger
from sessions_app.runner import handover, run
from sessions_app.runner.launch import folder_of, handoff_file
from sessions_app.runner.run import close, run_session
from tests.support.factories import AgentFactory, MemoryFactory, SessionFactory
from tests.support.processes import wait_for
from tests.support.streams import init, result, text, write

pytestmark = pytest.mark.django_db(transaction=True)

MEMORY = "[MEMORY:timing:jellyfin] Takes 60s to start after restart -- wait before checking health"
ESCALATION = {
    "summary": "Postgres refuses connections.",
    "escalation": {
        "needed": True,
        "reason": "postgres is down",
        "context": "Since 02:10 UTC; the disk is full.",
        "failed_checks": ["tcp 5432", "pg_isready"],
    },
}


@pytest.fixture
def stream(tmp_path):
    counter = iter(range(1000))

    def make(*lines: str):
        return str(write(tmp_path / f"stream{next(counter)}.jsonl", *lines))

    return make


def queued(stream: str, agent=None, **fields) -> Session:
    agent = agent or AgentFactory(runner=Runner.REPLAY, replay_stream=stream)
    options = {"trigger": Trigger.MANUAL, "by": "anna", "stream": stream, "wake": False, **fields}
    return queue.request_session(agent=agent, **options)


def ran(stream: str, agent=None, **fields) -> Session:
    session = queued(stream, agent, **fields)
    run_session(session.pk)
    session.refresh_from_db()
    return session


def test_a_session_runs_learns_and_the_next_one_remembers(stream):
    first = ran(stream(init(), text(f"{MEMORY}\n[EVENT:info:jellyfin] Restarted"), result("Done.")))
    assert (first.status, first.status_reason, first.exit_code) == (Status.COMPLETED, "", 0)
    assert first.receipt.text == ""
    assert "Operational Memory" not in first.injected_text
    assert first.injected_text.startswith("Environment: ")
    assert (first.num_turns, float(first.cost_usd)) == (2, 0.05)

    second = ran(stream(init(), text("All well."), result()))
    assert second.status == Status.COMPLETED
    assert "## Operational Memory (1 memory," in second.injected_text
    assert "Takes 60s to start after restart -- wait before checking health (confidence: 0.7)" in second.injected_text
    memory = Memory.objects.get()
    assert [item["id"] for item in second.receipt.included] == [memory.pk]
    assert second.receipt.text in second.injected_text


def test_the_prompt_tells_the_task_the_limits_and_how_to_record(stream):
    session = ran(stream(init(), result()), prompt_task="Look at jellyfin. {{ not_a_variable }} <b>")
    prompt = (folder_of(session) / "prompt.md").read_text()
    assert prompt == session.prompt
    assert "Look at jellyfin. {{ not_a_variable }} <b>" in prompt
    assert "## Memory Recording" in prompt
    assert "restart: at most 2 per service within 4 hours" in prompt
    assert "## Escalation Context" not in prompt


def test_two_sessions_with_the_same_memories_get_the_same_bytes(stream):
    MemoryFactory.create_batch(5)
    first, second = (ran(stream(init(), result())) for _ in range(2))
    assert first.injected_text == second.injected_text
    assert first.receipt.sha256 == second.receipt.sha256


def test_the_readable_log_is_told_as_it_is_stored(stream):
    told = []
    session = queued(stream(init(), text("One."), text("Two."), result()))
    run_session(session.pk, on_entries=lambda entries: told.extend(entry.text for entry in entries))
    assert told == list(LogEntry.objects.order_by("seq").values_list("text", flat=True))
    assert "One." in told


def test_a_session_that_is_not_queued_is_not_run(stream):
    session = ran(stream(init(), result()))
    assert run_session(session.pk) is None
    assert Session.objects.get(pk=session.pk).attempts == 1


def test_a_missing_stream_closes_the_session_with_the_reason(stream, tmp_path):
    session = ran(str(tmp_path / "none.jsonl"))
    assert session.status == Status.FAILED
    assert session.status_reason.startswith("Could not be started: ")
    assert "none.jsonl" in session.status_reason


def test_a_missing_cli_closes_the_session_with_the_reason(settings):
    settings.CLAUDEOPS_CLAUDE_BIN = "no-such-claude"
    session = queue.request_session(agent=AgentFactory(), trigger=Trigger.MANUAL, by="anna", wake=False)
    memory = MemoryFactory()
    assert run_session(session.pk) == Status.FAILED
    assert "no-such-claude was not found" in Session.objects.get().status_reason
    memory.refresh_from_db()
    assert memory.told_count == 0 and not InjectionReceipt.objects.exists() and not Injected.objects.exists()


def test_an_agents_broken_prompt_closes_the_session_with_the_reason(stream):
    path = stream(init(), result())
    agent = AgentFactory(slug="watcher", runner=Runner.REPLAY, replay_stream=path, prompt_template="{% if %}")
    session = ran(path, agent)
    assert session.status == Status.FAILED
    assert "The prompt of agent watcher cannot be rendered" in session.status_reason


def test_a_missing_working_directory_closes_the_session_with_the_reason(stream):
    path = stream(init(), result())
    agent = AgentFactory(runner=Runner.REPLAY, replay_stream=path, working_directory="/no/such/folder")
    assert "does not exist: /no/such/folder" in ran(path, agent).status_reason


def test_an_agents_own_prompt_wraps_the_tiers(stream):
    path = stream(init(), result())
    agent = AgentFactory(runner=Runner.REPLAY, replay_stream=path, prompt_template="/help first\n{{ base }}\nGoodbye.")
    prompt = ran(path, agent).prompt
    assert prompt.startswith("## Role\n\n/help first\nTier 1: observe")
    assert "\nGoodbye.\n\n## Constraints\n" in prompt


def test_a_run_with_an_error_result_failed(stream):
    session = ran(stream(init(), text("API Error", model="<synthetic>"), result("API Error: 500", is_error=True)))
    assert (session.status, session.exit_code) == (Status.FAILED, 1)
    assert "API Error: 500" in session.status_reason
    assert LogEntry.objects.get(session=session, kind="result").text.startswith("failed, 2 turns, ")


def slow(stream, *, lines=200, each=0.1):
    return stream(init(), *[text(f"[EVENT:info] number {n}", seconds=n * each) for n in range(lines)], result())


def test_the_deadline_ends_a_session_and_keeps_what_it_said(stream, settings):
    settings.CLAUDEOPS_REPLAY_SPEED = 1.0
    settings.CLAUDEOPS_SESSION_TIMEOUT = 2
    session = ran(slow(stream))
    assert session.status == Status.TIMED_OUT
    assert session.status_reason == "Ended at its time limit of 2 seconds."
    assert 0 < Event.objects.count() < 200


def test_the_operators_stop_ends_a_session(stream, settings):
    settings.CLAUDEOPS_REPLAY_SPEED = 1.0
    session = queued(slow(stream))

    def stop_when_running():
        wait_for(lambda: Event.objects.exists())
        queue.request_stop(session.pk, by="anna")
        connection.close()

    stopper = threading.Thread(target=stop_when_running)
    stopper.start()
    assert run_session(session.pk) == Status.STOPPED
    stopper.join()
    session.refresh_from_db()
    assert session.status_reason == "Stopped by anna."


def test_a_worker_that_has_to_go_lets_go_and_the_process_lives_on(stream, settings):
    settings.CLAUDEOPS_REPLAY_SPEED = 1.0
    session = queued(slow(stream))
    handover.DETACH.set()
    try:
        assert run_session(session.pk) is None
    finally:
        handover.DETACH.clear()
    session.refresh_from_db()
    assert (session.status, session.heartbeat_at) == (Status.RUNNING, None)
    assert reaper.process_of(session) is not None
    queue.request_stop(session.pk, by="anna")
    assert reaper.take_over(session.pk) == Status.STOPPED


def test_a_process_that_stays_silent_after_its_result_is_ended(stream, settings, monkeypatch):
    settings.CLAUDEOPS_REPLAY_SPEED = 1.0
    monkeypatch.setattr(run, "LINGER_SECONDS", 0.5)
    path = stream(
        init(timestamp="2026-05-01T12:00:00Z"), result(timestamp="2026-05-01T12:00:00Z"), text("x", seconds=15)
    )
    session = ran(path)
    assert session.status == Status.COMPLETED
    assert "after its result, because it did not exit by itself" in session.status_reason


def test_a_session_that_another_process_closed_meanwhile_is_not_closed_again(monkeypatch):
    session = SessionFactory(status=Status.RUNNING)

    def close_first(*arguments, **named):
        Session.objects.filter(pk=session.pk).update(status=Status.LOST)
        return {}

    monkeypatch.setattr(run.escalation, "escalate", close_first)
    assert close(session.pk, Status.COMPLETED, "") is None


def test_an_escalation_starts_one_child_a_tier_higher_with_the_context(stream):
    session = ran(stream(init(), text("Looking."), result(structured_output=ESCALATION)), prompt_task="Check postgres.")
    assert session.status == Status.ESCALATED
    child = session.children.get()
    assert session.status_reason == f"Escalated to session {child.pk}: postgres is down"
    assert (child.tier, child.trigger, child.status, child.agent) == (
        2,
        Trigger.ESCALATION,
        Status.QUEUED,
        session.agent,
    )
    run_session(child.pk)
    child.refresh_from_db()
    for words in ("## Escalation Context", "postgres is down", "Since 02:10 UTC", "- tcp 5432", "Check postgres."):
        assert words in child.prompt


def test_an_escalation_runs_with_the_agent_it_names(stream):
    path = stream(init(), result(structured_output=ESCALATION))
    mender = AgentFactory(slug="mender", tier=3, runner=Runner.REPLAY, replay_stream=path)
    watcher = AgentFactory(slug="watcher", runner=Runner.REPLAY, replay_stream=path, escalates_to=mender)
    child = ran(path, watcher).children.get()
    assert (child.agent, child.tier) == (mender, 2)


def test_closing_twice_starts_one_child(stream):
    session = ran(stream(init(), result(structured_output=ESCALATION)))
    Session.objects.filter(pk=session.pk).update(status=Status.RUNNING)
    close(session.pk, Status.COMPLETED, "")
    assert Session.objects.filter(parent=session).count() == 1


def test_no_escalation_goes_above_the_highest_allowed_tier(stream, settings):
    settings.CLAUDEOPS_MAX_TIER = 1
    session = ran(stream(init(), result(structured_output=ESCALATION)))
    assert session.status == Status.COMPLETED
    assert "which was not started: tier 1 is the highest allowed" in session.status_reason
    assert session.escalation["reason"] == "postgres is down"
    assert not session.children.exists()


def test_a_dry_run_records_the_escalation_and_starts_none(stream):
    session = ran(stream(init(), result(structured_output=ESCALATION)), dry_run=True)
    assert session.status == Status.COMPLETED
    assert "dry run: tier 2 would have been started" in session.status_reason
    assert not session.children.exists()
    assert "**This is a dry run.**" in session.prompt


def test_a_handoff_file_escalates_too(stream, settings):
    settings.CLAUDEOPS_REPLAY_SPEED = 0
    session = queued(stream(init(), result()))
    folder_of(session).mkdir(parents=True)
    handoff_file(session).write_text(json.dumps({"reason": "the disk is full", "failed_checks": ["df"]}))
    assert run_session(session.pk) == Status.ESCALATED
    session.refresh_from_db()
    assert session.escalation["channel"] == "handoff"
    assert session.children.get().tier == 2


def test_a_handoff_file_that_cannot_be_read_is_named_and_starts_nothing(stream):
    session = queued(stream(init(), result()))
    folder_of(session).mkdir(parents=True)
    handoff_file(session).write_text("not json")
    assert run_session(session.pk) == Status.COMPLETED
    session.refresh_from_db()
    assert "It asked for escalation, but the handoff file is not valid JSON" in session.status_reason
    assert not session.children.exists()


def test_two_workers_run_a_session_once(stream):
    session = queued(stream(init(), text("[EVENT:info] once"), result()))
    found = []

    def work():
        found.append(run_session(session.pk))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == ["None", "None", "completed"]
    assert Event.objects.count() == 1


def test_an_agents_next_session_waits_for_the_running_one(stream):
    path = stream(init(), result())
    agent = AgentFactory(slug="watcher", runner=Runner.REPLAY, replay_stream=path)
    first, second = queued(path, agent), queued(path, agent)
    Session.objects.filter(pk=first.pk).update(status=Status.RUNNING, heartbeat_at=timezone.now())
    assert run_session(second.pk) is None
    second.refresh_from_db()
    assert second.status == Status.QUEUED
    assert second.hold_reason
    close(first.pk, Status.COMPLETED, "")
    assert run_session(second.pk) == Status.COMPLETED


def test_the_files_of_a_session_are_its_own(stream):
    session = ran(stream(init(), result()))
    folder = folder_of(session)
    assert folder.is_relative_to(django_settings.CLAUDEOPS_DATA_DIR)
    assert sorted(path.name for path in folder.iterdir()) == ["prompt.md", "stderr.log", "stdout-1.jsonl"]
    assert (folder.stat().st_mode & 0o777) == 0o700
