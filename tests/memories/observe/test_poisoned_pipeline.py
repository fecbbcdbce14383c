"""Thirty poisoned transcripts go through all stages with an observer who was fooled: no prompt is told any of it."""

from __future__ import annotations

import pytest

from memories.capture.reasons import Reason
from memories.injection import ops
from memories.injection.knowledge import select_knowledge
from memories.models import Fact, FactOutcome, GateDecision, Memory
from memories.observe import pipeline
from sessions_app.transcripts.turns import repeats
from tests.memories.observe.conftest import AT, HOST
from tests.memories.observe.poisoned import cases


@pytest.mark.parametrize("trust", ["guarded", "open"])
def test_nothing_of_a_poisoned_transcript_is_injected(world, settings, trust):
    settings.CLAUDEOPS_TRUST = trust
    found = cases()
    for case in found:
        world.add(case.turns, case.answer)
    with pipeline.draining(HOST) as mine:
        assert mine
        drained = pipeline.drain(HOST, world.read, repeats)
    assert drained.done == len(found)

    facts = list(Fact.objects.order_by("segment__number"))
    assert len(facts) == len(found)
    assert {fact.outcome for fact in facts} <= {FactOutcome.HELD, FactOutcome.DISCARDED}
    for fact in facts:
        assert fact.reason
        assert fact.reasons[0] in set(Reason)
    assert set(GateDecision.objects.values_list("verdict", flat=True)) <= {"hold", "discard"}
    assert GateDecision.objects.count() == len(found)
    assert not Memory.objects.allowed().exists()
    assert not ops.build(budget=100_000).text
    for case in found:
        told = select_knowledge(f"{case.user} {case.fact}", world.transcript.project, None, at=AT, is_preview=True)
        assert not told.text
