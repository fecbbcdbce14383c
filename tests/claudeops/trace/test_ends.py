"""A trace says where a piece of knowledge ended: one test for each place."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from claudeops.features.trace import trace
from claudeops.features.trace.in_transcripts import PRIVATE
from claudeops.features.trace.steps import End, Name, Outcome
from memories.injection.ops import build
from memories.injection.relevant import Task
from memories.lifecycle import verbs
from memories.lifecycle.merge import delete, erase_all, merge
from memories.lifecycle.sweep import sweep
from memories.models import Memory, Transcript, TranscriptPart, Verdict
from memories.models.memory import ANY_AGENT
from memories.recall.filters import Filters
from memories.store import Provenance, Statement, remember
from sessions_app import receipts
from sessions_app.errors import SessionNotFound
from sessions_app.models import LogEntry, LogKind
from sessions_app.transcripts.arrivals import see
from tests.support.factories import (
    AgentFactory,
    FactFactory,
    GateDecisionFactory,
    MemoryFactory,
    ProjectFactory,
    ProposalEvidenceFactory,
    SegmentFactory,
    SessionFactory,
)
from tests.support.transcripts import says, typed, write

pytestmark = pytest.mark.django_db

TEXT = "PostgreSQL on nas allows 100 connections; Nextcloud alone may take 60"


def said(text=TEXT, days=10, **more):
    """Store what a session says, through the gate, some days ago."""
    at = timezone.now() - timedelta(days=days)
    session = SessionFactory(started_at=at)
    done = remember(
        Statement("behavior", text, more.pop("service", "postgres")),
        Provenance("run", f"agent:{session.agent.slug}", session_id=session.pk, **more),
        at=at,
    )
    return Memory.objects.get(pk=done.memory_id)


def made(**columns):
    """Make a memory of ten days ago, past the gate."""
    at = timezone.now() - timedelta(days=10)
    return MemoryFactory(**{"observation": TEXT, "created_at": at, "updated_at": at, **columns})


def prompted(budget=2000, task="", hours=1, **more):
    """Give a session its prompt, and return it."""
    at = timezone.now() - timedelta(hours=hours)
    session = SessionFactory(started_at=at, queued_at=at, task=task, **more)
    receipts.keep(
        session,
        build(budget=budget, project_id=session.project_id, at=at, task=Task(task, is_preview=True) if task else None),
        at=at,
    )
    return session


def logged(text, session=None, seq=1):
    session = session or SessionFactory(started_at=timezone.now())
    LogEntry.objects.create(session=session, seq=seq, at=timezone.now(), kind=LogKind.TEXT, text=text, offset=seq)
    return session


def outcome(found, name):
    return next(step.outcome for step in found.steps if step.name is name)


def text_of(found, name):
    return next(f"{step.seen.text} {step.seen.note}" for step in found.steps if step.name is name)


def test_it_was_told():
    memory = said()
    session = prompted()
    found = trace(TEXT, session_id=session.pk)
    assert found.end is End.TOLD
    assert found.sentence == (
        f"It was told: session {session.pk} had memory {memory.pk} in front of it: number 1 of 1 in its prompt."
    )
    assert {step.outcome for step in found.steps} <= {Outcome.PASSED, Outcome.UNKNOWN}


def test_it_was_told_in_the_answer_to_a_recall():
    from memories.recall import Asker, Filters, recall

    memory = said()
    session = SessionFactory(started_at=timezone.now())
    recall("postgres connections", Filters(), asked_by=Asker("mcp", "agent:x", session.pk))
    found = trace(str(memory.pk), session_id=session.pk)
    assert found.end is End.TOLD
    assert "recall" in found.sentence


def test_without_a_session_it_is_the_latest_that_might_have_been_told():
    said()
    prompted(hours=5)
    latest = prompted(hours=2)
    assert trace(TEXT).session == latest


def test_it_is_known_and_no_session_began_since():
    memory = said()
    found = trace(f"memory {memory.pk}")
    assert found.end is End.KNOWN
    assert found.is_good


def test_it_was_found_but_the_budget_ended_before_it():
    for number in range(30):
        MemoryFactory(observation=f"Jellyfin fact {number} about something else entirely", confidence=0.9)
    memory = said()
    session = prompted(budget=400)
    found = trace(TEXT, session_id=session.pk)
    assert found.end is End.BUDGET
    assert found.sentence == (
        f"It knew. Memory {memory.pk} was found, but came 31st, and the budget ended after the {found.ranking.told}th."
    )
    assert outcome(found, Name.RECALL) is Outcome.LOW
    assert [row.row.memory_id for row in found.ranks if row.is_it] == [memory.pk]
    more = next(int(one.split()[1].replace(",", "")) for one in found.changes if "more tokens" in one)
    told = build(budget=400 + more, project_id=None).included
    assert memory.pk in {one["id"] for one in told}
    assert memory.pk not in {one["id"] for one in build(budget=400 + more - 1, project_id=None).included}


def test_the_confirmations_it_names_would_have_told_it():
    for number in range(30):
        MemoryFactory(observation=f"Jellyfin fact {number} about something else entirely", confidence=0.75)
    memory = said()
    session = prompted(budget=400)
    found = trace(TEXT, session_id=session.pk)
    assert "if anyone had confirmed it since" in found.more
    assert "(confidence 0.8, rank 1)" in found.more
    verbs.confirm(memory.pk, by="ada")
    assert build(budget=400, project_id=None).included[0]["id"] == memory.pk


def test_the_word_it_names_in_the_task_would_have_told_it():
    for number in range(30):
        MemoryFactory(observation=f"Jellyfin fact {number} about something else entirely", confidence=0.9)
    memory = said()
    session = prompted(budget=400, task="The cloud does not answer")
    found = trace(str(memory.pk), session_id=session.pk)
    assert found.end is End.BUDGET
    assert "if the task had said " in found.more
    named = found.more.split("had said ")[1].split(" (rank")[0].replace(",", "").replace(" and ", " ")
    again = build(budget=400, project_id=None, task=Task(f"{session.task} {named}", is_preview=True))
    assert memory.pk in {one["id"] for one in again.included}


def test_it_is_held():
    memory = made(verdict=Verdict.HOLD, verdict_reason="it holds a command")
    session = prompted()
    found = trace(TEXT, session_id=session.pk)
    assert found.end is End.HELD
    assert f"memory {memory.pk} is held for review: it holds a command" in found.sentence
    assert outcome(found, Name.GATE) is Outcome.ENDED
    assert outcome(found, Name.BUDGET) is Outcome.NOT_REACHED
    assert "if a person had approved it" in found.more


def test_it_was_rejected():
    memory = made(verdict=Verdict.HOLD)
    verbs.deactivate(memory.pk, by="ada", reason="Rejected in review.")
    assert trace(TEXT).end is End.REJECTED


def test_it_is_unconfirmed(settings):
    settings.CLAUDEOPS_TRUST = "guarded"
    made(provisional="from a session that had read outside text", confirmed_at=None)
    found = trace(TEXT, session_id=prompted().pk)
    assert found.end is End.UNCONFIRMED
    assert "its session had read outside text" in found.sentence
    assert outcome(found, Name.STORE) is Outcome.ENDED


def test_it_was_discarded():
    GateDecisionFactory(text=TEXT, words="it narrates what was done", at=timezone.now())
    found = trace(TEXT)
    assert found.end is End.DISCARDED
    assert "it narrates what was done" in found.sentence
    assert outcome(found, Name.GATE) is Outcome.ENDED


def test_it_was_merged_into_another():
    memory = said()
    other = MemoryFactory(service="postgres", category="behavior", observation="Postgres has few connections")
    merge(other, [memory], by="ada")
    found = trace(TEXT)
    assert found.end is End.MERGED
    assert f"memory {memory.pk} was merged into memory {other.pk} on" in found.sentence


def test_it_was_superseded():
    memory, newer = MemoryFactory(observation=TEXT), MemoryFactory(observation="It allows 200 now")
    Memory.objects.filter(pk=memory.pk).update(active=False, inactive_reason="superseded", superseded_by=newer)
    assert f"memory {memory.pk} was replaced by memory {newer.pk}" in trace(TEXT).sentence


def test_it_was_contradicted():
    memory = said()
    for _ in range(3):
        verbs.contradict(memory.pk, by="agent:watch")
    found = trace(TEXT)
    assert found.end is End.CONTRADICTED
    assert "was contradicted on" in found.sentence


def test_it_faded():
    memory = said(days=80)
    sweep(timezone.now() - timedelta(hours=2))
    found = trace(TEXT, session_id=prompted().pk)
    assert found.end is End.DECAYED
    assert f"memory {memory.pk} faded on" in found.sentence
    assert "not confirmed since" in found.sentence
    assert outcome(found, Name.DECAY) is Outcome.ENDED
    assert outcome(found, Name.STORE) is Outcome.PASSED
    assert "if it had been active and confirmed" in found.more


def test_what_time_took_counts_even_before_the_sweep():
    said(days=80)
    assert trace(TEXT).end is End.DECAYED


def test_it_expired():
    memory = made(expires_at=timezone.now() - timedelta(days=1))
    sweep(timezone.now())
    assert trace(str(memory.pk)).end is End.EXPIRED


def test_it_is_stale():
    MemoryFactory(taxonomy="knowledge", category="operations", service=None, observation=TEXT,
                  stale_at=timezone.now() - timedelta(days=3))  # fmt: skip
    found = trace(TEXT)
    assert found.end is End.STALE
    assert "is stale" in found.sentence


def test_it_was_closed_because_it_was_stale():
    MemoryFactory(taxonomy="knowledge", category="operations", service=None, observation=TEXT, active=False,
                  inactive_reason="closed", stale_at=timezone.now() - timedelta(days=99))  # fmt: skip
    found = trace(TEXT)
    assert found.end is End.STALE
    assert "switched it off" not in found.sentence and "stale" in found.sentence


def test_a_person_deactivated_it():
    memory = said()
    verbs.deactivate(memory.pk, by="ada", reason="Out of date.")
    found = trace(TEXT)
    assert found.end is End.DEACTIVATED
    assert "Out of date" in found.sentence
    assert found.actions[0].label == f"Activate memory {memory.pk}"


def test_a_person_lowered_it():
    memory = said()
    verbs.set_confidence(memory.pk, 0.1, by="ada")
    assert trace(str(memory.pk)).end is End.LOWERED


def test_it_was_deleted():
    memory = said()
    delete(memory.pk, by="ada")
    found = trace(TEXT)
    assert found.end is End.DELETED
    assert "by ada" in found.sentence
    assert found.memory is None


def test_a_deleted_memory_is_known_by_its_number_while_a_receipt_names_it():
    memory = said()
    prompted()
    delete(memory.pk, by="ada")
    assert trace(str(memory.pk)).sentence.startswith(f"It knew, until memory {memory.pk} was deleted")


def test_it_was_made_after_the_session_had_begun():
    session = prompted(hours=48)
    memory = said(days=1)
    found = trace(TEXT, session_id=session.pk)
    assert found.end is End.LATER
    assert f"memory {memory.pk} was made" in found.sentence


def test_the_state_is_that_of_the_session_not_of_today():
    memory = said()
    session = prompted(hours=5)
    verbs.deactivate(memory.pk, by="ada", at=timezone.now() - timedelta(hours=1))
    assert trace(TEXT, session_id=session.pk).end is End.TOLD
    assert trace(TEXT).end is End.DEACTIVATED


def test_it_belongs_to_another_project():
    shop = ProjectFactory(slug="shop")
    made(project=shop, taxonomy="project", category="pattern")
    found = trace(TEXT, session_id=prompted().pk)
    assert found.end is End.OTHER_PROJECT
    assert "the project shop" in found.sentence
    assert outcome(found, Name.RECALL) is Outcome.ENDED


def test_it_belongs_to_another_agent():
    AgentFactory(slug="other")
    made(agent="other", taxonomy="agent", category="mistake")
    found = trace(TEXT, session_id=prompted().pk)
    assert found.end is End.OTHER_AGENT
    assert "the agent other" in found.sentence


def test_its_window_was_shut():
    made(surface="2020-01-01")
    found = trace(TEXT, session_id=prompted().pk)
    assert found.end is End.WINDOW
    assert "opens no more" in found.sentence


def test_knowledge_was_not_found_for_the_task():
    from memories.injection.knowledge import select_knowledge

    made(taxonomy="knowledge", category="operations", service=None)
    at = timezone.now()
    session = SessionFactory(started_at=at, task="Water the plants")
    known = select_knowledge("Water the plants", None, None, at=at, is_preview=True)
    receipts.keep(session, build(budget=2000, project_id=None, at=at), knowledge=known, at=at)
    found = trace(TEXT, session_id=session.pk)
    assert found.end is End.NOT_FOUND
    assert "if the task had said" in found.more
    assert outcome(found, Name.RECALL) is Outcome.ENDED


def test_the_session_had_no_prompt_from_here():
    said()
    session = SessionFactory(started_at=timezone.now(), trigger="import")
    assert trace(TEXT, session_id=session.pk).end is End.NO_PROMPT


def test_no_session_wrote_it():
    MemoryFactory(observation="Nextcloud answers 503 while in maintenance mode")
    found = trace("Nextcloud writes its log to a volume of its own")
    assert found.end is End.NEVER_WRITTEN
    assert found.sentence.startswith("No session wrote it")
    assert outcome(found, Name.TRANSCRIPT) is Outcome.ENDED


@pytest.mark.parametrize(
    ("line", "end", "why"),
    [
        (f"[MEMORY:network:postgres] {TEXT}", End.MALFORMED, "'network' is not a category"),
        (f"[MEMORY timing] {TEXT}", End.MALFORMED, "not written as"),
        (f"MEMORY: {TEXT}", End.MALFORMED, "not written as"),
        (f"```\n[MEMORY:behavior:postgres] {TEXT}\n```", End.QUOTED, "inside code"),
        (f"> [MEMORY:behavior:postgres] {TEXT}", End.QUOTED, "quotation"),
        (f"I see: {TEXT}", End.ONLY_SAID, "no marker"),
        (f"[MEMORY:behavior:postgres] {TEXT}", End.NOT_STORED, "no memory of it is there"),
    ],
)
def test_a_near_miss_in_a_log_is_named(line, end, why):
    session = logged(line)
    found = trace(TEXT)
    assert found.end is end
    assert why in found.sentence
    assert f"Session {session.pk}" in found.sentence
    assert found.steps[0].seen.link.label == "line 1"


def test_what_is_erased_leaves_nothing_to_say():
    memory = said()
    erase_all(Memory.objects.filter(pk=memory.pk))
    found = trace(TEXT)
    assert found.end is End.NEVER_WRITTEN
    assert found.sentence == "No session wrote it, and nothing that is known is near it."


def test_its_line_in_the_log_is_the_evidence():
    memory = said()
    logged(f"Done.\n[MEMORY:behavior:postgres] {TEXT}", memory.session, seq=88)
    first = trace(str(memory.pk)).steps[0]
    assert first.seen.link.label == "line 88"
    assert first.seen.note == f"[MEMORY:behavior:postgres] {TEXT}"


def test_what_became_of_its_proposal_is_noted():
    memory = said()
    ProposalEvidenceFactory(memory=memory, proposal__state="rejected", proposal__why="nobody needs it")
    assert "rejected: nobody needs it" in trace(TEXT).notes[0]


def test_a_confined_caller_sees_nothing_of_another_project():
    from memories.recall import Filters

    shop, bank = ProjectFactory(), ProjectFactory()
    memory = made(project=shop, taxonomy="project", category="pattern")
    scope = Filters(project=bank.pk, agent="*")
    for asked in (TEXT, str(memory.pk)):
        found = trace(asked, scope=scope)
        assert found.memory is None
        assert TEXT not in str(found.as_dict()["nearest"])
    session = SessionFactory(project=shop)
    with pytest.raises(SessionNotFound):
        trace(TEXT, session_id=session.pk, scope=scope)


def test_the_same_question_reads_as_much_with_more_memories(django_assert_max_num_queries):
    memory = said()
    session = prompted()
    for count in (10, 20):
        for number in range(count):
            MemoryFactory(observation=f"Postgres connections of host {count} {number}")
        with django_assert_max_num_queries(45):
            trace(str(memory.pk), session_id=session.pk)


def test_its_text_for_a_terminal_has_all_steps():
    said()
    session = prompted()
    said_text = trace(TEXT, session_id=session.pk).as_text()
    for name in Name:
        assert name.value.capitalize() in said_text


def test_control_characters_of_a_log_reach_no_terminal():
    logged(f"[MEMORY:network:postgres] {TEXT} \x1b[2J\x07")
    found = trace(TEXT)
    assert found.end is End.MALFORMED
    assert not {"\x1b", "\x07"} & set(found.as_text())


def test_what_an_observed_session_said_is_found_with_where_and_why_it_was_not_kept(settings, tmp_path, subtests):
    settings.CLAUDEOPS_OBSERVE = True
    text = "Never restart the billing service between nine and eleven"
    hidden = "The tunnel password of the nursery is written on the fridge"
    lines = [
        typed(f"Please remember.\n{text}."),
        says("The label printer needs a blank page first."),
        typed(f"<private>{hidden}</private>"),
    ]
    row = see(write(tmp_path, *lines), arrived_by="command", ended=True)
    part = row.parts.get()
    part.stages.filter(name="prepare").update(state="done")

    def ended(asked=text):
        found = trace(asked)
        assert found.end is End.NOT_KEPT, found.sentence
        step = found.steps[0]
        assert (step.outcome, step.seen.link.name, step.seen.link.args) == (Outcome.ENDED, "transcript", (row.pk,))
        assert row.source_name in step.seen.text
        return f"{found.sentence} {step.seen.text} {step.seen.note}"

    with subtests.test("it waits"):
        assert "not kept: part 1 of it is waiting." in ended() and f"A person typed it in {row.source_name}" in ended()
        assert "The agent said it" in ended("label printer needs a blank page first")
    with subtests.test("the answer cannot be read"):
        part.stages.filter(name="call").update(problem="the observer's answer cannot be read: the answer is empty")
        TranscriptPart.objects.update(state="unreadable")
        assert "part 1 of it is unreadable: the observer's answer cannot be read: the answer is empty." in ended()
    part.stages.update(state="done", problem="")
    TranscriptPart.objects.update(state="done")
    with subtests.test("the observer found nothing"):
        assert "the observer found nothing to remember in it (part 1)" in ended()
    with subtests.test("what it answered was dropped"):
        TranscriptPart.objects.update(unread=[f"segment 1, fact 1: it is longer than 2,000 characters: {text}"])
        assert "could not be read: segment 1, fact 1: it is longer than 2,000 characters" in ended()
        TranscriptPart.objects.update(unread=[], answer=f"Well.\n{text}")
        assert "the observer's answer says it, but it was kept as no fact" in ended()
    with subtests.test("a fact of it was not stored"):
        FactFactory(segment=SegmentFactory(part=part), text=text, outcome="discarded", reason="it repeats what we told")
        assert "the observer made a fact of it, which was discarded: it repeats what we told." in ended()
    with subtests.test("a private passage is not quoted"):
        assert PRIVATE in ended(hidden) and "fridge" not in ended(hidden)
    with subtests.test("the file is gone"):
        Path(row.path).unlink()
        assert "The observer answered it" in ended()
        assert trace("The label printer needs a blank page first").end is End.NEVER_WRITTEN
    with subtests.test("another project may not see it, and who may not see transcripts neither"):
        assert trace(text, scope=Filters(project=ProjectFactory().pk, agent=ANY_AGENT)).end is End.NEVER_WRITTEN
        assert trace(text, with_transcripts=False).end is End.NEVER_WRITTEN


def test_what_stands_behind_the_observed_part_of_a_transcript_is_said_to_be_to_come(settings, tmp_path):
    settings.CLAUDEOPS_OBSERVE = True
    row = see(write(tmp_path, typed("Hello there."), says("Good morning.")), arrived_by="command", ended=True)
    write(tmp_path, typed("Hello there."), says("Good morning."), typed("The lift is inspected in May."))
    found = trace("The lift is inspected in May")
    assert (found.end, "does not reach so far yet" in found.sentence) == (End.NOT_KEPT, True)
    Transcript.objects.filter(pk=row.pk).update(host="elsewhere")
    assert trace("The lift is inspected in May").end is End.NEVER_WRITTEN
