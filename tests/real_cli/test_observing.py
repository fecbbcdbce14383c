"""The real CLI with the hooks of whole sessions: the briefing, memories that match a prompt, and that it is observed.

A server that is away, slow or failing changes nothing of the session, and costs nothing that the sweep does not find.
"""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from memories.models import ArrivedBy, Memory, ModelCall, Transcript
from memories.observe.instructions import INSTRUCTIONS, message
from memories.observe.prepare import prepare
from memories.recall import keyword_index
from sessions_app import tasks
from sessions_app.hooks.events import HANDLERS
from sessions_app.models import HookHeard, HookReceipt, TranscriptFolder
from sessions_app.transcripts.sweep import sweep
from sessions_app.transcripts.turns import turns_of
from tests.memories.llm.conftest import recordings  # noqa: F401  # a fixture
from tests.real_cli.person import Person, outcomes, result
from tests.real_cli.test_hooks import no_server, slow_server
from tests.support.factories import MemoryFactory, ProjectFactory
from tests.support.messages_api import says

pytestmark = pytest.mark.real_cli

KEY = "How are the prices of the checkout stored?"
KNOWN = "Prices of the checkout are stored in cents"
SAID = "Mind that prices of the checkout are stored in cents."
OBSERVED = f"""<observations><segment><narrative>The person asked how prices are stored.</narrative><facts>
- 🔴 [gate=allow confidence=0.92 category=jc:operations] {KNOWN}
</facts></segment></observations>"""
BRIEFED = "The till of the shop closes at nine"


@pytest.fixture
def project(person: Person, settings: Any):
    settings.CLAUDEOPS_OBSERVE = True
    settings.CLAUDEOPS_BRIEFING_BUDGET = 1500
    return ProjectFactory(path=str(person.repository), name="The shop")


def knowledge(text: str, **fields: Any) -> Memory:
    row = MemoryFactory(taxonomy="knowledge", category="operations", service=None, observation=text, **fields)
    keyword_index.catch_up()
    return row


def seen_by_model(person: Person) -> str:
    return json.dumps(person.api.to(KEY)[0].body, ensure_ascii=False)


def work() -> None:
    """Let a worker do what the hooks queued."""
    for row in OrmQ.objects.order_by("pk"):
        if row.task["func"] == "sessions_app.tasks.handle_hook":
            tasks.handle_hook(*row.task["args"])
            row.delete()


@pytest.mark.parametrize("client", ["curl", "python3"])
def test_the_briefing_is_in_the_request_and_the_end_of_the_session_is_observed(
    person, door, project, client, tmp_path, monkeypatch
):
    knowledge(BRIEFED, project=project)
    if client == "python3":
        hide(tmp_path, monkeypatch, "curl")
    person.install("--observe", "--url", door.url)
    person.api.script(KEY, says("In cents."))

    lines = person.run(KEY)

    assert set(outcomes(lines)) == {"success"}
    assert "# Briefing: The shop" in seen_by_model(person)
    assert BRIEFED in seen_by_model(person)
    receipt = HookReceipt.objects.get(event="SessionStart")
    assert receipt.cli_session_id == result(lines)["session_id"]
    assert {row.problem for row in HookHeard.objects.all()} == {""}
    assert set(HookHeard.objects.values_list("event", flat=True)) == {"SessionStart", "UserPromptSubmit", "SessionEnd"}
    assert not Transcript.objects.exists()
    work()
    row = Transcript.objects.get()
    assert (row.arrived_by, row.project, row.cli_session_id) == (ArrivedBy.HOOK, project, receipt.cli_session_id)
    assert row.ended_at is not None
    assert row.parts.count() == 1
    assert [str(path) for path in person.transcripts] == [row.path]


@pytest.mark.parametrize("types", [True, False], ids=["typed", "by the option -p"])
def test_what_a_person_types_is_told_to_the_next_session_and_what_a_program_gives_waits(
    person,
    door,
    project,
    recordings,  # noqa: F811
    settings,
    types,
):
    """The whole way, with a recorded answer of the observer. An agent's own shell gives prompts by -p, too."""
    settings.CLAUDEOPS_HOST = "here"
    person.install("--observe", "--url", door.url)
    person.api.script(SAID, says("Noted, from now on in cents."))
    (person.type if types else person.run)(SAID)
    work()
    part = Transcript.objects.get().parts.get()
    text = message(prepare(turns_of(part)).text, project="The shop", agent="")
    assert SAID in text
    recordings.say("observer", INSTRUCTIONS, text, OBSERVED)

    for _ in range(2):  # a task may come twice
        tasks.observe_here()

    memory = Memory.objects.get()
    assert (memory.taxonomy, memory.project, memory.observation) == ("knowledge", project, KNOWN)
    assert (ModelCall.objects.count(), HookReceipt.objects.count()) == (1, 0)
    (quote,) = memory.support["quotes"]
    assert (memory.support["by"], quote["source"]) == (
        ("person", "") if types else ("outside", "claims to be a person")
    )
    assert quote["text"] == SAID

    again = "Add a coupon to the cart"
    person.api.script(again, says("Done."))
    person.run(again)
    assert (KNOWN in json.dumps(person.api.to(again)[0].body)) is types
    told = [entry["id"] for receipt in HookReceipt.objects.all() for entry in receipt.included]
    assert told == ([memory.pk] if types else [])


def test_a_prompt_brings_what_matches_it_and_was_not_in_the_briefing(person, door, project, settings):
    settings.CLAUDEOPS_BRIEFING_BUDGET = 0
    knowledge(KNOWN, project=project)
    knowledge(BRIEFED, project=project)
    person.install("--observe", "--url", door.url)
    person.api.script(KEY, says("In cents."))
    person.run(KEY)
    assert KNOWN in seen_by_model(person)
    assert BRIEFED not in seen_by_model(person)
    assert HookReceipt.objects.get().event == "UserPromptSubmit"


def test_a_session_that_is_compacted_is_observed_before_and_told_again(person, door, project):
    knowledge(BRIEFED, project=project)
    person.install("--observe", "--url", door.url)
    person.api.script(KEY, says("In cents."), then=says("They spoke of prices."))
    session = result(person.run(KEY))["session_id"]
    OrmQ.objects.all().delete()

    person.run("/compact", resume=session)

    events = list(HookReceipt.objects.order_by("pk").values_list("event", "part"))
    assert [part.partition(":")[0] for event, part in events] == ["startup", "compact"]
    assert HookHeard.objects.filter(event="PreCompact", problem="").exists()
    work()
    assert Transcript.objects.get().cli_session_id == session


@pytest.mark.parametrize("server", [no_server, slow_server])
def test_a_server_that_is_away_or_slow_changes_nothing_and_loses_nothing(person, project, server):
    knowledge(BRIEFED, project=project)
    person.api.script(KEY, says("In cents."))
    with server() as url:
        person.install("--observe", "--url", url)
        began = time.monotonic()
        lines = person.run(KEY)
        lasted = time.monotonic() - began
    assert lasted < 60
    assert result(lines)["result"] == "In cents."
    assert "Briefing" not in json.dumps([request.body for request in person.api.requests])
    (start,) = [one for one in lines if one.get("subtype") == "hook_response" and one["hook_event"] == "SessionStart"]
    assert (start["outcome"], start["stdout"], start["stderr"]) == ("success", "", "")
    assert TranscriptFolder.objects.get().path == str(person.home / ".claude" / "projects")
    assert len(person.transcripts) == 1


def test_what_was_missed_while_the_server_was_down_is_taken_in_once(person, door, project):
    with no_server() as url:
        person.install("--observe", "--url", url)
        person.api.script(KEY, says("In cents."), then=says("Too."))
        session = result(person.run(KEY))["session_id"]
    assert not Transcript.objects.exists()
    now = timezone.now()
    for hours in (1, 2):
        sweep(at=now + timedelta(hours=hours))
    row = Transcript.objects.get()
    assert (row.arrived_by, row.project, row.cli_session_id) == (ArrivedBy.SWEEP, project, session)
    assert row.parts.count() == 1

    person.install("--observe", "--url", door.url)
    person.run("And the taxes?", resume=session)
    work()
    sweep(at=now + timedelta(hours=3))
    (first, second) = Transcript.objects.get().parts.order_by("number")
    assert first.end == second.start, "the tail alone is new"
    assert second.end == person.transcripts[0].stat().st_size


def test_a_door_that_fails_leaves_the_session_as_it_is(person, door, project, monkeypatch):
    def broken(call):
        raise RuntimeError("the disk is gone")

    for event in ("SessionStart", "UserPromptSubmit"):
        monkeypatch.setitem(HANDLERS, event, [broken])
    person.install("--observe", "--url", door.url)
    person.api.script(KEY, says("In cents."))
    lines = person.run(KEY)
    assert result(lines)["result"] == "In cents."
    assert "the disk is gone" not in json.dumps([request.body for request in person.api.requests])
    assert "the disk is gone" in HookHeard.objects.get(event="SessionStart").problem


def test_a_machine_without_a_client_starts_sessions_as_before(person, door, project, tmp_path, monkeypatch):
    hide(tmp_path, monkeypatch, "curl", "python3")
    person.install("--observe", "--url", door.url)
    person.api.script(KEY, says("In cents."))
    assert result(person.run(KEY))["result"] == "In cents."
    assert not HookHeard.objects.filter(event="SessionStart").exists()


def hide(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Give the CLI a PATH without these programs."""
    (folder / "bin").mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for found in Path(place).glob("*") if Path(place).is_dir() else ():
            if found.name not in names and not (folder / "bin" / found.name).exists():
                (folder / "bin" / found.name).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder / "bin"))
