"""The whole way of curating: observations, reflection, triage, commit, the prompt of the next session."""

from __future__ import annotations

import pytest
from django.utils import timezone

from memories.curate import proposals
from memories.curate.files import promote_due
from memories.curate.reflection.runs import reflect
from memories.curate.triage import triage
from memories.models import MemoryFile, Proposal, ProposalState, Reflection, TelemetryRecord, Tier
from sessions_app import queue
from sessions_app.models import Runner, Session, Status, Trigger
from sessions_app.runner.run import run_session
from tests.sessions_app.curating.conftest import BACKUP, CLEAN, LOCK, OUTSIDE
from tests.support.factories import AgentFactory
from tests.support.streams import init, result, text, write

pytestmark = pytest.mark.django_db(transaction=True)


def go() -> None:
    """Do everything that the schedules do."""
    reflect(None)
    triage()
    promote_due()


def next_prompt(tmp_path) -> Session:
    stream = write(tmp_path / "stream.jsonl", init(), text("Looked."), result())
    agent = AgentFactory(runner=Runner.REPLAY, replay_stream=str(stream))
    session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="anna", wake=False)
    run_session(session.pk)
    session.refresh_from_db()
    assert session.status == Status.COMPLETED, session.status_reason
    return session


def test_from_observations_to_the_next_prompt_byte_for_byte(world, tmp_path):
    lock, backup, _ = world.observe()
    world.answer()
    go()

    day = f"{timezone.now():%Y-%m-%d}"
    assert (
        world.file.read_bytes().decode()
        == f"""# Memory

## Operations

- ({day}) {LOCK}
- ({day}) {CLEAN}
"""
    )
    by_text = {row.proposed_text: row for row in Proposal.objects.all()}
    assert {name: (row.state, row.tier) for name, row in by_text.items()} == {
        LOCK: (ProposalState.PROMOTED, Tier.RULES),
        BACKUP: (ProposalState.PROMOTED, Tier.MODEL),
        OUTSIDE: (ProposalState.WAITING, Tier.PERSON),
    }
    subjects = world.git("log", "--format=%an <%ae>: %s").splitlines()
    assert len(subjects) == 2
    assert all(one.startswith("claudeops <") for one in subjects)
    bodies = world.git("log", "--reverse", "--format=%B%x00").split("\0")
    for body, text_of, memory, who in ((bodies[0], LOCK, lock, "system"), (bodies[1], BACKUP, backup, "triage:haiku")):
        assert f"Proposal: {by_text[text_of].uuid}" in body
        assert f"Evidence: memory {memory.pk}" in body
        assert "Approved-by: " in body and who in body

    session = next_prompt(tmp_path)
    block = session.receipt.curated["text"]
    body = f"""

What this house has found out and keeps in MEMORY.md. Where what you see disagrees, say so and believe what you see.

### Operations
- ({day}) {LOCK}
- ({day}) {CLEAN}"""
    assert block == f"## Curated Memory (2 entries, ~{session.receipt.curated['tokens']} tokens){body}"
    assert block in session.prompt
    assert session.receipt.curated["files"][0]["commit"] == world.git("rev-parse", "HEAD").strip()
    assert OUTSIDE not in session.prompt

    waiting = by_text[OUTSIDE]
    proposals.approve(waiting.pk, by="anna", reason="I have seen it")
    promote_due()
    assert "Approved-by: anna" in world.git("log", "-1", "--format=%B")
    assert OUTSIDE in next_prompt(tmp_path).prompt


def test_everything_twice_is_everything_once(world):
    world.observe()
    world.answer()
    go()
    before = (world.file.read_bytes(), world.git("rev-parse", "HEAD"), Proposal.objects.count())
    calls = Reflection.objects.count()
    go()
    assert before == (world.file.read_bytes(), world.git("rev-parse", "HEAD"), Proposal.objects.count())
    assert Reflection.objects.count() == calls, "nothing new, and yet the reflector was asked"
    actions = list(TelemetryRecord.objects.order_by("pk").values_list("action", flat=True))
    for stage in ("reflect", "triage", "promote"):
        assert f"memory.{stage}.completed" in actions


def test_a_person_who_edits_the_file_is_believed_and_told(world, tmp_path):
    world.observe()
    world.answer()
    go()
    theirs = world.file.read_text() + "- Ask Anna before the shop is restarted\n"
    world.file.write_text(theirs)
    promote_due()
    assert world.file.read_text() == theirs
    assert "- Ask Anna before the shop is restarted" in next_prompt(tmp_path).prompt
    assert MemoryFile.objects.get().entries == 3
