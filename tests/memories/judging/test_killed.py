"""A worker that is killed at any place: no pair is answered twice, and no call is paid twice for what was stored."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.judging import judge_waiting
from memories.llm.batch import LASTS
from memories.models import Disagreement, Memory, MemoryChange
from tests.memories.judging.conftest import MODEL, a_pair
from tests.support.processes import killed
from tests.support.thorough import one_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

WORK = "from memories.judging import judge_waiting; judge_waiting()"
BATCHES, QUESTIONS = "memories.judging.batches", "memories.lifecycle.disagreements"

# Where it is killed, and how many calls there are in all.
PLACES = [
    ("return", "memories.llm.batch", "_claim", 1, 1),
    ("call", BATCHES, "_store", 1, 2),  # the answer was not stored
    ("return", BATCHES, "_hash", 2, 2),  # inside the transaction that stores it
    ("return", BATCHES, "_store", 1, 1),
    ("call", QUESTIONS, "answer", 1, 1),
    ("return", QUESTIONS, "answer", 2, 1),
    ("return", BATCHES, "_carry_out", 1, 1),
    ("return", BATCHES, "_carry_out", 3, 1),
]


@pytest.mark.parametrize(("event", "module", "function", "nth", "calls"), one_of(PLACES))
def test_the_next_run_goes_on_behind_what_was_stored(judge, event, module, function, nth, calls):
    for _ in range(3):
        a_pair()
    judge.usual = "reinforces"
    more = {
        "CLAUDEOPS_MODEL_URL": f"{judge.served.url}/chat/completions",
        "CLAUDEOPS_MODEL_JUDGE": f"http:{MODEL}",
    }
    killed(WORK, event, module, function, nth=nth, more=more)
    judge_waiting(at=timezone.now() + LASTS + timedelta(seconds=1))  # its claim is void by now
    assert len(judge.asked) == calls
    assert Disagreement.objects.filter(state="answered", answer="merged", judging_until=None).count() == 3
    assert MemoryChange.objects.filter(kind="merged").count() == 6
    assert Memory.objects.filter(active=True).count() == 3
    assert set(Memory.objects.filter(active=True).values_list("merged_count", flat=True)) == {1}
    assert not judge_waiting().actions
