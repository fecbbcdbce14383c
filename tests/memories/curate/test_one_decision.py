"""One decision a fact: what a person said about a memory counts for the proposal and for MEMORY.md, too."""

from __future__ import annotations

import pytest

from memories import store
from memories.capture.statement import Provenance, Statement
from memories.capture.support import Quote, Support, Voice
from memories.curate import files, proposals
from memories.curate.triage import triage
from memories.lifecycle import verbs
from memories.models import Memory, Project, Proposal, ProposalState, Tier, Trust
from tests.memories.curate.shop import a_shop, told
from tests.support.factories import SessionFactory

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

FACT = "The firewall of `shop` is off on port 8443, as /etc/shop/ports.conf says."
OTHER = FACT.replace("8443", "8444")


@pytest.fixture
def shop(settings, tmp_path) -> Project:
    """What the rules leave goes to a person, since no model is set."""
    settings.CLAUDEOPS_MODEL_TRIAGE = ""
    return a_shop(tmp_path / "shop")


def learned(project: Project, text: str = FACT) -> Memory:
    """A memory that outside text said, in a session that read it."""
    session = SessionFactory(project=project)
    support = Support(Voice.OUTSIDE, (Quote(3, text, "WebFetch"),))
    origin = Provenance("run", "agent:research", session.pk, tier=1, project_id=project.pk).supported(support)
    stored = store.remember(Statement("operations", text, taxonomy="knowledge"), origin)
    memory = Memory.objects.get(pk=stored.memory_id)
    assert (memory.trust, bool(memory.unconfirmed)) == (Trust.EXTERNAL, True)
    return memory


def proposed(memory: Memory, text: str = FACT, key: str = "k") -> Proposal:
    """What a reflection proposes by the memory, after the triage."""
    given = {"section": "operations", "text": text, "evidence": [memory], "confidence": 0.95, "by": "reflector:m"}
    row = proposals.propose(files.file_of(memory.project), "add", key=key, **given)
    triage()
    row.refresh_from_db()
    return row


def after_triage(row: Proposal) -> tuple[str, int, str]:
    triage()
    files.promote_due()
    row.refresh_from_db()
    return row.state, row.tier, row.trust


WAITS = (ProposalState.WAITING, Tier.PERSON, Trust.EXTERNAL)
PROMOTED = (ProposalState.PROMOTED, Tier.RULES, Trust.OPERATOR)


@pytest.mark.parametrize("verb", [verbs.confirm, verbs.approve])
def test_who_confirms_the_memory_needs_no_second_decision(shop, settings, verb) -> None:
    settings.CLAUDEOPS_TRUST = "strict"
    memory = learned(shop)
    row = proposed(memory)
    assert (row.state, row.tier, row.trust) == WAITS == after_triage(row)
    verb(memory, by="ada")
    memory.refresh_from_db()
    assert (memory.trust, memory.unconfirmed) == (Trust.OPERATOR, "")
    assert after_triage(row) == PROMOTED
    last = row.decisions.latest("pk")
    assert (last.verdict, last.tier, last.by) == ("promote", Tier.RULES, "system")
    assert told(shop) == {FACT}


def test_who_decided_before_it_was_proposed_needs_no_second_decision(shop, settings) -> None:
    settings.CLAUDEOPS_TRUST = "strict"
    memory = learned(shop)
    verbs.confirm(memory, by="ada")
    row = proposed(memory)
    assert after_triage(row) == PROMOTED and told(shop) == {FACT}
    assert not row.decisions.filter(tier=Tier.PERSON).exists()


def test_what_a_session_confirms_still_waits(shop) -> None:
    memory = learned(shop)
    row = proposed(memory)
    verbs.reinforce(memory, by="agent:research", confirms=True)
    assert memory.confirmed_at is not None
    assert after_triage(row) == WAITS


def test_other_words_or_another_project_still_wait(shop, tmp_path) -> None:
    memory, elsewhere = learned(shop), learned(a_shop(tmp_path / "other"))
    rows = [
        proposed(memory, OTHER, "other number"),
        proposed(memory, f"{FACT} The mail relay has the same.", "more words"),
        proposed(elsewhere),
    ]
    verbs.confirm(memory, by="ada")
    assert [after_triage(row) for row in rows] == [WAITS] * 3
    assert told(shop) == set()


def test_a_proposal_in_conflict_waits_for_who_sees_both_texts(shop) -> None:
    memory = learned(shop)
    row = proposed(memory)
    Proposal.objects.filter(pk=row.pk).update(conflict={"base": "", "theirs": OTHER, "ours": FACT, "line": 1})
    verbs.confirm(memory, by="ada")
    assert after_triage(row) == WAITS


def test_who_takes_the_confirmation_back_before_the_triage_has_decided_nothing(shop) -> None:
    memory = learned(shop)
    row = proposed(memory)
    verbs.confirm(memory, by="ada")
    verbs.deactivate(memory, by="ada")
    assert after_triage(row) == WAITS


def test_a_proposal_that_was_taken_back_is_not_promoted_again_by_the_same_confirmation(shop) -> None:
    memory = learned(shop)
    row = proposed(memory)
    verbs.confirm(memory, by="ada")
    assert after_triage(row) == PROMOTED
    proposals.undo(row.pk, by="bob")
    assert after_triage(row) == WAITS
    assert told(shop) == set()


def test_two_triages_after_the_confirmation_promote_it_once(shop) -> None:
    memory = learned(shop)
    row = proposed(memory)
    verbs.confirm(memory, by="ada")
    assert proposals.believe_decided() == 1 and proposals.believe_decided() == 0
    assert after_triage(row) == after_triage(row) == PROMOTED
    assert row.decisions.filter(verdict="promote").count() == 1


def test_an_observation_in_other_words_that_still_waits_asks_for_no_second_decision(shop) -> None:
    memory, beside = (
        learned(shop),
        learned(shop, "The ports of `shop` are in /etc/shop/ports.conf, without a firewall."),
    )
    given = {"section": "operations", "text": FACT, "confidence": 0.95, "by": "reflector:m", "key": "k"}
    row = proposals.propose(files.file_of(shop), "add", evidence=[memory, beside], **given)
    assert after_triage(row) == WAITS
    verbs.confirm(memory, by="ada")
    assert after_triage(row) == PROMOTED
