"""What a run does beside the memories: proposals that nobody answered, old discards, and pairs for the judge."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memories.curate.maintenance import dry_run, maintain_due, maintain_now
from memories.models import Disagreement, GateDecision, MaintenanceRun, Proposal, ProposalDecision, ProposalState, Tier
from tests.memories.curate.maintenance.house import AT
from tests.memories.judging.conftest import a_pair, judge
from tests.support.factories import GateDecisionFactory, MemoryFileFactory, ProposalFactory

__all__ = ["judge"]

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


def counts(run: MaintenanceRun, step: str) -> dict[str, Any]:
    found: dict[str, Any] = run.steps.get(name=step).counts
    return found


def planned(step: str) -> Any:
    return next(one for one in dry_run(at=AT) if one.name == step)


def test_proposals_that_a_person_did_not_answer_in_time_expire():
    file = MemoryFileFactory()
    given = {"file": file, "tier": Tier.PERSON}
    late = [ProposalFactory(**given, expires_at=AT - HOUR), ProposalFactory(**given, expires_at=AT)]
    early = ProposalFactory(**given, expires_at=AT + HOUR)
    decided = ProposalFactory(**given, expires_at=AT - HOUR, state=ProposalState.REJECTED, decided_at=AT - 2 * HOUR)
    assert planned("proposals").did == 2
    assert not Proposal.objects.filter(state=ProposalState.EXPIRED).exists()
    run = maintain_due(at=AT)
    assert counts(run, "proposals") == {"did": 2}
    assert {row.pk for row in Proposal.objects.filter(state=ProposalState.EXPIRED)} == {row.pk for row in late}
    for row, state in ((early, ProposalState.WAITING), (decided, ProposalState.REJECTED)):
        row.refresh_from_db()
        assert row.state == state
    assert set(ProposalDecision.objects.values_list("proposal", "by", "verdict")) == {
        (row.pk, "system", "expire") for row in late
    }
    assert counts(maintain_due(at=AT + timedelta(days=1)), "proposals") == {"did": 1}  # the early one, in its time


def test_what_waited_for_a_model_goes_to_a_person_with_the_whole_time():
    row = ProposalFactory(tier=Tier.MODEL, expires_at=AT - HOUR)
    maintain_due(at=AT)
    row.refresh_from_db()
    assert (row.state, row.tier, row.expires_at) == (ProposalState.WAITING, Tier.PERSON, AT + timedelta(days=7))


def test_discards_of_more_than_14_days_ago_are_deleted_and_the_labelled_lose_their_text():
    old, labelled, young = (
        GateDecisionFactory(at=AT - timedelta(days=15)),
        GateDecisionFactory(at=AT - timedelta(days=15), label="released"),
        GateDecisionFactory(at=AT - timedelta(days=13)),
    )
    held = GateDecisionFactory(at=AT - timedelta(days=15), verdict="hold")
    assert planned("discards").did == 1
    assert GateDecision.objects.count() == 4
    run = maintain_due(at=AT)
    assert counts(run, "discards") == {"did": 1}
    assert not GateDecision.objects.filter(pk=old.pk).exists()
    kept = dict(GateDecision.objects.values_list("pk", "text"))
    assert kept == {labelled.pk: "", young.pk: young.text, held.pk: held.text}


def test_pairs_that_wait_are_judged_and_what_it_cost_is_said(judge):
    rows = [
        a_pair(older={"observation": one}, newer={"observation": other})
        for one, other in (
            ("Purges media after 90 days", "Old media goes in a quarter"),
            ("The printer stands on floor 3", "Ink is in the cellar"),
            ("Nightly dumps leave at 03:00", "Tapes are labelled by hand"),
        )
    ]
    assert (planned("judged").did, planned("judged").counts) == (None, {"wait": 3})
    assert not judge.asked
    run = maintain_now(by="paula")
    assert counts(run, "judged") == {"did": 3, "wait": 0, "cost_usd": 0.0}
    assert [len(pairs) for pairs in judge.asked] == [3]
    assert Disagreement.objects.filter(pk__in=[row.pk for row in rows], judged_at=None).count() == 0
    assert counts(maintain_now(by="paula"), "judged")["wait"] == 0
    assert len(judge.asked) == 1


def test_without_a_judge_the_pairs_wait_and_the_run_is_done():
    a_pair()
    run = maintain_now(by="paula")
    assert (run.state, counts(run, "judged")) == ("done", {"did": 0, "wait": 1, "cost_usd": 0.0})
