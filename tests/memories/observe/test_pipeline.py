"""A part of a transcript goes through its stages: each once, each stored with its output."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.errors import Conflict
from memories.inbox import KINDS
from memories.lifecycle import forgotten
from memories.models import (
    Fact,
    FactOutcome,
    GateDecision,
    Memory,
    MemoryChange,
    ModelCall,
    PartState,
    Segment,
    Stage,
    StageState,
    TranscriptPart,
)
from memories.observe import pipeline
from memories.observe.pipeline import send_again
from memories.observe.turns import PartTurns, TurnKind
from sessions_app.models import Purge
from tests.memories.observe.conftest import ASKED, AT, FACT, HOST, World, answer, turns
from tests.support.factories import MemoryFactory, SessionFactory, TranscriptFactory

USER, AGENT, RESULT = TurnKind.USER, TurnKind.AGENT, TurnKind.RESULT
TEXT = "The photos volume is unmounted before a snapshot is taken"


def states(part: TranscriptPart) -> list[str]:
    return list(part.stages.order_by("position").values_list("state", flat=True))


def test_a_fact_becomes_a_memory_with_its_context(world):
    part = world.add(turns((USER, ASKED), (AGENT, "Done: the backup is moved.")), answer(FACT))
    assert world.drain() == pipeline.Drained(done=1)
    part.refresh_from_db()
    memory = Memory.objects.get()
    fact = Fact.objects.get()
    assert (memory.observation, memory.taxonomy, memory.category) == (TEXT, "knowledge", "operations")
    assert (memory.confidence, memory.trust, memory.verdict) == (0.92, "operator", "allow")
    assert (fact.outcome, fact.memory_id, fact.stored_at) == (FactOutcome.CREATED, memory.pk, AT)
    assert fact.source == f"{world.transcript.source_name}-segment-1"
    quote = "Remember: the photos volume must be unmounted before a snapshot."
    assert (fact.turn, fact.excerpt) == (1, quote)
    assert fact.support == memory.support == {"by": "person", "quotes": [{"turn": 1, "text": quote, "source": ""}]}
    assert Segment.objects.get().narrative == "The backup was moved."
    assert (part.state, part.prepared, set(states(part))) == (PartState.DONE, "", {StageState.DONE})
    assert part.answer == answer(FACT)
    assert part.call == ModelCall.objects.get()
    assert GateDecision.objects.get().memory_id == memory.pk


def test_what_nobody_supports_waits_if_it_has_a_topic_also_where_nothing_was_read_from_outside(world):
    topic, plain = "Backups of the photos are deleted after thirty days", "The photos are taken with a new camera"
    for said, text, support, waits in (
        ((AGENT, f"{topic}."), topic, "nobody", "removal"),
        ((USER, f"{topic}."), topic, "person", ""),
        ((RESULT, "backup photos delete=thirty days"), topic, "house", ""),
        ((AGENT, f"{plain}."), plain, "nobody", ""),
    ):
        Memory.objects.all().delete()
        fact = f"🔴 [gate=allow confidence=0.92 category=jc:operations] {text}"
        world.add(turns((USER, "Please look after the host of the photos."), said, (AGENT, "Done.")), answer(fact))
        world.drain()
        memory = Memory.objects.get()
        assert (memory.support["by"], memory.provisional) == (support, waits), said
        assert (memory.trust, memory.confirmed_at is not None) == (
            ("operator", True) if support == "person" else ("session", False)
        )


def test_a_fact_that_a_person_had_purged_is_stored_nowhere(world):
    forgotten.forget([TEXT], Purge.objects.create(by="ops").pk, at=AT)
    part = world.add(turns((USER, ASKED), (AGENT, "Done: the backup is moved.")), answer(FACT))
    assert world.drain() == pipeline.Drained(done=1)
    part.refresh_from_db()
    fact = Fact.objects.get()
    assert (fact.outcome, fact.text, fact.excerpt) == (FactOutcome.DISCARDED, forgotten.MARK, "")
    assert "purged" in fact.reason
    assert not Memory.objects.exists() and not GateDecision.objects.exclude(text="").exists()
    assert TEXT not in part.answer


def test_a_fact_of_a_session_in_no_project_waits_in_the_inbox_and_one_of_ours_is_told_in_all(world):
    """Whatever the model is sure of: else each project would be told what was said in any folder."""
    own = {"project": None, "session": SessionFactory()}
    for fields, verdict in (({"project": None}, "hold"), (own, "allow")):
        Memory.objects.all().delete()
        transcript = TranscriptFactory(host=HOST, last_at=AT, **fields)
        one = World(transcript, world.recordings)
        one.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
        one.drain()
        memory, decision = Memory.objects.get(), GateDecision.objects.latest("pk")
        assert (memory.verdict, memory.project, decision.verdict) == (verdict, None, verdict)
        assert ("belongs to no project" in memory.verdict_reason) == (verdict == "hold")
        assert KINDS["held"].waiting().exists() == (verdict == "hold")  # type: ignore[attr-defined]


def test_a_part_that_is_done_is_not_observed_again(world):
    world.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
    world.drain()
    assert world.drain() == pipeline.Drained()
    assert (Memory.objects.count(), ModelCall.objects.count()) == (1, 1)


def test_a_part_with_nothing_to_observe_asks_no_model(world):
    part = world.add(turns((USER, "hi")), None)
    assert world.drain() == pipeline.Drained(done=1)
    assert ModelCall.objects.count() == 0
    assert part.stages.get(name="call").counts == {"skipped": "the part holds nothing to observe"}


def test_a_session_in_which_nothing_was_learned_leaves_nothing(world):
    world.add(turns((USER, ASKED), (AGENT, "Done.")), "<observations></observations>")
    assert world.drain() == pipeline.Drained(done=1)
    assert (Segment.objects.count(), Memory.objects.count()) == (0, 0)


def test_without_a_model_a_part_waits_and_is_caught_up_later(world, settings):
    settings.CLAUDEOPS_MODEL_OBSERVER = ""
    part = world.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
    assert world.drain(at=AT) == pipeline.Drained(waiting=1)
    stage = part.stages.get(name="call")
    assert (stage.state, stage.attempts) == (StageState.WAITING, 0)
    assert "no model is set" in stage.problem
    assert pipeline.due_hosts(at=AT) == []
    settings.CLAUDEOPS_MODEL_OBSERVER = "recorded:haiku"
    later = AT + pipeline.WITHOUT_MODEL + timedelta(minutes=1)
    assert pipeline.due_hosts(at=later) == [HOST]
    assert world.drain(at=later) == pipeline.Drained(done=1)
    assert Memory.objects.get().observation == TEXT


def test_a_stage_that_fails_again_and_again_fails_its_part_until_a_person_sends_it_again(world):
    given = turns((USER, ASKED), (AGENT, "Done."))
    part = world.add(given, None)  # no recorded answer: each attempt fails
    at = AT
    for _ in range(pipeline.ATTEMPTS):
        world.drain(at=at)
        ModelCall.objects.update(asked_at=AT - timedelta(days=1))  # so that the model is not resting
        at += pipeline.LONGEST_PAUSE * 2
    part.refresh_from_db()
    assert (part.state, part.stages.get(name="call").state) == (PartState.FAILED, StageState.FAILED)
    world.says(given, answer(FACT))
    send_again(part, by="ada")
    with pytest.raises(Conflict, match="has not failed"):
        send_again(part, by="ada")
    assert world.drain(at=at) == pipeline.Drained(done=1)


def test_an_answer_that_cannot_be_read_is_asked_for_again_later_and_keeps_nothing_else_waiting(world):
    given, later = turns((USER, ASKED), (AGENT, "Done.")), turns((USER, ASKED), (AGENT, "Again."), first=3)
    part, other = world.add(given, "I'm sorry, but there is nothing I can help with."), world.add(later, answer(FACT))
    assert world.drain(at=AT) == pipeline.Drained(unreadable=1, done=1)
    part.refresh_from_db()
    stage = part.stages.get(name="call")
    assert (part.state, stage.state, stage.attempts) == (PartState.UNREADABLE, StageState.WAITING, 1)
    assert stage.not_before == AT + pipeline.FIRST_PAUSE
    assert part.answer.startswith("I'm sorry") and part.call is not None and part.prepared
    assert "cannot be read: no observation was found in the answer" in stage.problem
    assert pipeline.due_hosts(at=AT) == []
    assert world.drain(at=AT) == pipeline.Drained()
    world.says(given, answer(FACT.replace("photos", "videos")))
    again = AT + pipeline.FIRST_PAUSE
    assert pipeline.due_hosts(at=again) == [HOST]
    assert world.drain(at=again) == pipeline.Drained(done=1)
    part.refresh_from_db()
    other.refresh_from_db()
    assert (part.state, other.state, part.unread) == (PartState.DONE, PartState.DONE, [])
    assert Fact.objects.count() == 2


def test_an_unreadable_answer_is_asked_for_again_at_growing_pauses_and_not_for_ever(world):
    given = turns((USER, ASKED), (AGENT, "Done."))
    part = world.add(given, "[1, 2]")
    at, pauses = AT, []
    for _ in range(pipeline.ATTEMPTS):
        assert world.drain(at=at) == pipeline.Drained(unreadable=1)
        until = part.stages.get(name="call").not_before
        pauses.append(until - at)
        at = until
    assert pauses == sorted(pauses) and pauses[0] < pauses[-1] == pipeline.LONGEST_PAUSE
    part.refresh_from_db()
    assert (part.state, part.stages.get(name="call").state) == (PartState.UNREADABLE, StageState.FAILED)
    assert (pipeline.due_hosts(at=at), world.drain(at=at)) == ([], pipeline.Drained())
    world.says(given, answer(FACT))
    send_again(part, by="ada")
    assert world.drain(at=at) == pipeline.Drained(done=1)


def test_a_part_that_is_asked_about_at_this_moment_is_not_sent_again(world):
    part = world.add(turns((USER, ASKED), (AGENT, "Done.")), "[1, 2]")
    world.drain(at=AT)
    part.stages.filter(name="call").update(state=StageState.RUNNING)
    with pytest.raises(Conflict):
        send_again(part, by="ada")


def test_a_transcript_that_is_gone_fails_its_part_with_the_reason(world):
    part = world.add(PartTurns(missing="the file is gone"), None)
    assert world.drain() == pipeline.Drained(failed=1)
    stage = part.stages.get(name="prepare")
    assert (stage.state, stage.problem) == (StageState.FAILED, "the file is gone")


def test_the_parts_of_a_transcript_are_observed_in_their_order(world):
    first = world.add(turns((USER, ASKED), (AGENT, "Done.")), None)
    world.add(turns((USER, ASKED), (AGENT, "Again."), first=3), answer(FACT))
    assert world.drain() == pipeline.Drained(waiting=1)
    assert Memory.objects.count() == 0
    first.stages.update(state=StageState.DONE)
    TranscriptPart.objects.filter(pk=first.pk).update(state=PartState.DONE)
    assert world.drain() == pipeline.Drained(done=1)


def test_segments_are_numbered_through_the_transcript(world):
    world.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
    other = "🟡 [gate=allow confidence=0.8 category=operations] Snapshots of the photos run every night at 02:00"
    world.add(turns((USER, "When do the snapshots run? Every night at 02:00."), first=3), answer(other))
    assert world.drain() == pipeline.Drained(done=2)
    assert list(Segment.objects.order_by("number").values_list("number", flat=True)) == [1, 2]


def test_the_same_fact_of_another_transcript_merges(world, recordings):
    world.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
    world.drain()
    project = world.transcript.project
    other = World(TranscriptFactory(host=HOST, last_at=AT + timedelta(days=2), project=project), recordings)
    other.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
    other.drain()
    memory = Memory.objects.get()
    assert (memory.merged_count, memory.facts.count()) == (1, 2)
    assert Fact.objects.latest("pk").outcome == FactOutcome.MERGED


def test_what_repeats_a_tool_is_held_and_what_repeats_us_is_discarded(world):
    tool, told = "The proxy is restarted twice a day by design", "The registry keeps images for ninety days"
    said = answer(
        f"🟡 [gate=allow confidence=0.99 category=operations] {tool}",
        f"🟡 [gate=allow confidence=0.99 category=operations] {told}",
    )
    world.add(turns((USER, ASKED), (RESULT, f"README: {tool}."), told=(told,)), said)
    world.drain()
    held, discarded = Fact.objects.order_by("number")
    assert (held.verdict, held.outcome) == ("hold", FactOutcome.HELD)
    assert (discarded.verdict, discarded.outcome) == ("discard", FactOutcome.DISCARDED)
    assert Memory.objects.get().verdict == "hold"


def test_a_fact_that_cannot_be_compared_with_what_was_read_is_held(world):
    part = world.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
    world.drain()
    Memory.objects.all().delete()
    Fact.objects.update(outcome="", verdict="")
    GateDecision.objects.all().delete()
    part.stages.filter(name__in=("gate", "match", "store")).update(state=StageState.WAITING)
    TranscriptPart.objects.update(state=PartState.WAITING)
    world.parts[part.pk] = PartTurns(missing="the file is gone")
    world.drain()
    assert Memory.objects.get().verdict == "hold"


def test_a_claim_that_another_process_took_over_stores_nothing(world, monkeypatch):
    part = world.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
    read = world.read

    def slowly(given: TranscriptPart) -> PartTurns:
        Stage.objects.filter(part=given, name="prepare").update(claimed_at=timezone.now() + timedelta(hours=1))
        return read(given)

    monkeypatch.setattr(world, "read", slowly)
    assert world.drain() == pipeline.Drained(waiting=1)
    part.refresh_from_db()
    assert part.prepared == ""


def test_the_claim_of_a_process_that_is_gone_is_void(world):
    part = world.add(turns((USER, ASKED), (AGENT, "Done.")), answer(FACT))
    Stage.objects.filter(part=part, name="prepare").update(
        state=StageState.RUNNING, claimed_by=HOST, claimed_at=timezone.now()
    )
    assert world.drain() == pipeline.Drained(done=1)


def test_only_one_process_of_a_host_drains(db):
    with pipeline.draining(HOST) as first, pipeline.draining(HOST) as second:
        assert (first, second) == (True, False)


def test_a_memory_that_the_session_was_told_is_not_confirmed_by_it(world):
    memory = MemoryFactory(taxonomy="knowledge", category="operations", service=None, observation=TEXT)
    world.add(turns((USER, ASKED), told=(TEXT,), told_ids=frozenset({memory.pk})), answer(FACT))
    world.drain()
    assert Fact.objects.get().outcome == FactOutcome.DISCARDED
    assert not MemoryChange.objects.filter(memory=memory, kind="reinforced").exists()
