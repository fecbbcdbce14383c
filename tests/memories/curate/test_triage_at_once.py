"""Two triage workers at once, a person beside them, and workers that are killed: each proposal is decided once."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from memories.curate import proposals
from memories.curate.rules import Ruling
from memories.curate.triage import _carry_out_ruling, triage
from memories.llm.batch import LASTS
from memories.models import Proposal, ProposalDecision, Tier
from tests.memories.curate.triaging import a_file, a_proposal
from tests.support.processes import call, killed
from tests.support.thorough import one_of

pytestmark = pytest.mark.django_db(transaction=True)

WORK = "from memories.curate.triage import triage; triage()"
VAGUE = "The backup of the media server usually takes a while in the morning"


@pytest.mark.processes
def test_two_workers_decide_each_proposal_once(triager):
    triager.usual = ("reject", "")
    file = a_file()
    for number in range(12):
        a_proposal(file, f"The queue `q{number}` of the mail relay is emptied at 0{number % 10}:30.")
        a_proposal(file, f"{VAGUE}, part {number}.", tier=Tier.MODEL)
    by_three = "from memories.curate import triage as module; module.MOST_AT_ONCE = 3; module.triage()"
    workers = [call(by_three, triager.setup), call(by_three, triager.setup)]
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert worker.returncode == 0, out + err
    assert set(Counter(ProposalDecision.objects.values_list("proposal", flat=True)).values()) == {1}
    assert not Proposal.objects.filter(state="waiting", tier__lt=Tier.PERSON).exists()
    asked = Counter(one["text"] for batch in triager.asked for one in batch)
    assert len(asked) >= 12 and set(asked.values()) == {1}
    assert Proposal.objects.count() == ProposalDecision.objects.count() == 24


def test_what_a_person_edits_while_the_model_is_asked_waits_for_the_person(triager):
    row = a_proposal(a_file(), f"{VAGUE}.", tier=Tier.MODEL)

    def edited_first(asked):
        proposals.edit(row.pk, f"{VAGUE}, about an hour.", by="ann")
        connection.close()
        return json.dumps({"decisions": [{"proposal": 1, "verdict": "promote"}]})

    triager.answer = edited_first
    assert not triage().said
    row.refresh_from_db()
    assert (row.state, row.tier, row.text) == ("waiting", Tier.PERSON, f"{VAGUE}, about an hour.")


def test_what_a_person_decides_while_the_rules_look_is_not_passed_on(triager):
    row = a_proposal(a_file(), f"{VAGUE}.")
    proposals.reject(row.pk, by="ann")
    Proposal.objects.filter(pk=row.pk).update(tier=Tier.RULES)
    _carry_out_ruling(row, Ruling("", "vague", "no rule applies"), timezone.now())
    row.refresh_from_db()
    assert (row.state, row.tier, row.decided_by) == ("rejected", Tier.RULES, "ann")


def test_what_a_person_decides_while_the_model_is_asked_stays(triager):
    row = a_proposal(a_file(), f"{VAGUE}.", tier=Tier.MODEL)

    def rejected_first(asked):
        proposals.reject(row.pk, by="ann")
        connection.close()
        return json.dumps({"decisions": [{"proposal": 1, "verdict": "promote"}]})

    triager.answer = rejected_first
    assert not triage().said
    row.refresh_from_db()
    assert (row.state, row.decided_by) == ("rejected", "ann")
    assert [one.verdict for one in row.decisions.all()] == ["reject"]


def test_an_answer_that_comes_after_its_claim_was_taken_over_is_left(triager):
    row = a_proposal(a_file(), f"{VAGUE}.", tier=Tier.MODEL)
    later = timezone.now() + 2 * LASTS

    def taken_over(asked):
        Proposal.objects.update(claimed_until=later)
        connection.close()
        return json.dumps({"decisions": [{"proposal": 1, "verdict": "promote"}]})

    triager.answer = taken_over
    assert not triage().said
    row.refresh_from_db()
    assert (row.state, row.claimed_until - later) == ("waiting", timedelta())


TRIAGE, VERBS = "memories.curate.triage", "memories.curate.proposals"

# Where it is killed, and how many calls there are in all.
PLACES = [
    ("call", TRIAGE, "_by_rules", 2, 1),
    ("return", VERBS, "approve", 1, 1),  # in the transaction of a rule
    ("return", TRIAGE, "_carry_out_ruling", 3, 1),
    ("return", "memories.llm.batch", "_claim", 1, 1),
    ("call", TRIAGE, "carry_out", 1, 2),  # the answer is lost
    ("return", VERBS, "reject", 1, 2),  # in the transaction that carries it out
    ("return", TRIAGE, "_decide", 2, 2),
    ("return", TRIAGE, "carry_out", 1, 1),
    ("call", TRIAGE, "_report", 1, 1),
]


@pytest.mark.processes
@pytest.mark.parametrize(("event", "module", "function", "nth", "calls"), one_of(PLACES))
def test_after_a_kill_the_next_run_decides_what_is_left_and_nothing_twice(triager, event, module, function, nth, calls):
    triager.usual = ("reject", "")
    file = a_file()
    exact = a_proposal(file)
    vague = [a_proposal(file, f"{VAGUE}, part {word}.") for word in ("one", "two")]
    killed(WORK, event, module, function, nth=nth, more=triager.setup)
    triage(timezone.now() + LASTS + timedelta(seconds=1))  # its claim is void by now
    triage(timezone.now() + LASTS + timedelta(seconds=2))
    assert {one.state for one in Proposal.objects.filter(pk=exact.pk)} == {"approved"}
    assert {one.state for one in Proposal.objects.filter(pk__in=[row.pk for row in vague])} == {"rejected"}
    assert ProposalDecision.objects.count() == 3
    assert len(triager.asked) == calls
