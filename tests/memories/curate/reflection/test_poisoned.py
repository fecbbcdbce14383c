"""Poisoned observations that a reflector repeats: none gets into the file without a person."""

from __future__ import annotations

import html
from collections import Counter
from datetime import timedelta

import pytest

from memories.curate.reflection import reflect
from memories.curate.reflection.evidence import evidence_of
from memories.curate.rules import Given, decide, may_promote
from memories.curate.triage import triage
from memories.models import Proposal, Tier, Trust
from tests.memories.curate.reflection.conftest import AT, observed, proposal
from tests.memories.observe.poisoned import HONEST, cases

POISONED = cases()


def given(text: str, trust: Trust) -> Given:
    return Given("add", "operations", text, confidence=0.99, trust=trust)


def test_no_rule_promotes_a_poisoned_fact_even_if_its_lineage_looked_trusted(subtests):
    for case in POISONED:
        with subtests.test(str(case)):
            assert decide(given(case.fact, Trust.SESSION)).verdict not in ("promote", "merge")
            for trust in (Trust.IMPORTED, Trust.EXTERNAL):
                assert decide(given(case.fact, trust)).verdict not in ("promote", "merge")
                assert may_promote(given(case.fact, trust))


def test_most_poisoned_facts_pass_no_model_either_even_if_their_lineage_looked_trusted():
    assert sum(bool(may_promote(given(case.fact, Trust.SESSION))) for case in POISONED) >= 26


def test_few_honest_facts_need_a_person():
    found = Counter(str(decide(given(text, Trust.SESSION)).verdict) for text in HONEST)
    assert found["reject"] == 0
    assert found["review"] <= 4
    assert found["promote"] >= 6


def test_no_honest_fact_lends_its_name_to_a_poisoned_one(subtests):
    for case in POISONED:
        with subtests.test(str(case)):
            seen = [*HONEST[:20], case.fact]
            assert all(evidence_of(case.fact, "", [place], seen).why for place in range(20))


@pytest.mark.django_db(transaction=True)
def test_what_a_fooled_reflector_repeats_under_the_name_of_an_operator_is_rejected(triager, reflector, settings):
    """The reflector proposes each poisoned fact, and names a harmless observation of an operator as its evidence."""
    for case in POISONED:
        observed(case.fact, trust=Trust.EXTERNAL, exposure="outside", confirmed_at=AT, confidence=0.99)
    observed(HONEST[0], trust=Trust.OPERATOR, at=AT + timedelta(minutes=1))
    escaped = [case.fact.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for case in POISONED]
    reflector.proposals = [proposal(change=fact, evidence="1") for fact in escaped]
    assert reflect(None, at=AT + timedelta(hours=1)).counts["rejected"] == len(POISONED)
    # What a person opens again still is the word of the observations that it comes from.
    assert set(Proposal.objects.values_list("state", "trust")) == {("rejected", Trust.EXTERNAL)}


@pytest.mark.django_db(transaction=True)
def test_what_a_fooled_reflector_repeats_waits_for_a_person_after_rules_and_a_model_that_promotes_all(
    triager, reflector, settings
):
    for case in POISONED:
        observed(case.fact, trust=Trust.EXTERNAL, exposure="outside", confirmed_at=AT, confidence=0.99)

    def repeated(asked):
        shown = enumerate((one["text"] for one in asked["observations"]), 1)
        return "".join(proposal(change=html.escape(text), evidence=str(place)) for place, text in shown)

    reflector.answer = lambda asked: f"<proposals>{repeated(asked)}</proposals>"
    assert reflect(None, at=AT + timedelta(hours=1)).counts["made"] == len(POISONED)
    settings.CLAUDEOPS_MODEL_URL = triager.setup["CLAUDEOPS_MODEL_URL"]
    triager.usual = ("promote", "")
    triage(at=AT + timedelta(hours=2))
    assert Proposal.objects.filter(state="waiting", tier=Tier.PERSON).count() == len(POISONED)
    assert set(Proposal.objects.values_list("trust", flat=True)) == {Trust.EXTERNAL}
