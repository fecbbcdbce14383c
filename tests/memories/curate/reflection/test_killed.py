"""A worker that is killed between any two steps of a reflection: nothing is lost, and nothing is proposed twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.curate.reflection import reflect
from memories.curate.reflection.runs import LEASE
from memories.models import Proposal, ProposalEvidence, Reflection, TelemetryRecord
from tests.memories.curate.reflection.conftest import observed, proposal
from tests.support.processes import killed
from tests.support.thorough import one_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

WORK = "from memories.curate.reflection import reflect; reflect(None)"
RUNS, VERBS = "memories.curate.reflection.runs", "memories.curate.proposals"

# Where it is killed, and how many calls there are in all.
PLACES = [
    ("call", RUNS, "_claim", 1, 1),
    ("return", RUNS, "_asked", 1, 1),  # inside the transaction that makes the reflection
    ("return", RUNS, "_claim", 1, 1),
    ("call", RUNS, "_store", 1, 2),  # the answer was not stored
    ("return", RUNS, "_store", 1, 1),
    ("call", RUNS, "_carry_out", 1, 1),
    ("return", VERBS, "propose", 1, 1),  # inside the transaction that makes the proposals
    ("return", VERBS, "propose", 2, 1),
    ("return", RUNS, "_report", 1, 1),
    ("return", RUNS, "_carry_out", 1, 1),
]


@pytest.mark.parametrize(("event", "module", "function", "nth", "calls"), one_of(PLACES))
def test_the_next_run_goes_on_behind_what_was_stored(reflector, event, module, function, nth, calls):
    at = timezone.now() - timedelta(hours=1)
    observed("db_main has 3 replicas.", at=at)
    observed("db_main has 4 tables.", at=at)
    reflector.proposals = [
        proposal(change="db_main has 4 tables.", evidence="1"),
        proposal(change="db_main has 3 replicas.", evidence="2"),
    ]
    killed(WORK, event, module, function, nth=nth, more=reflector.environment)
    reflect(None, at=timezone.now() + LEASE.lasts + timedelta(seconds=1))  # its claim is void by now
    assert len(reflector.asked) == calls
    assert Reflection.objects.get().state == "done"
    assert sorted(Proposal.objects.values_list("text", flat=True)) == [
        "db_main has 3 replicas.",
        "db_main has 4 tables.",
    ]
    assert ProposalEvidence.objects.count() == 2
    assert TelemetryRecord.objects.filter(action="memory.reflect.completed").count() == 1
    assert reflect(None, at=timezone.now() + 2 * LEASE.lasts).outcome == "nothing"
