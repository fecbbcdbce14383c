"""A person's word about a memory is one about its text: kept by each verb, ended by what takes the memory out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from memories import store
from memories.capture.statement import Provenance, Statement
from memories.errors import InvalidMemory
from memories.lifecycle import forgotten, verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.merge import delete
from memories.lifecycle.undo import restore, undo
from memories.lifecycle.vouched import vouch, vouched
from memories.models import Memory, MemoryChange, Trust, Verdict, VouchedText
from sessions_app.models import Purge
from tests.support.factories import GateDecisionFactory, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

TEXT = "The firewall of the shop is off on port 8443"
OTHER = "The firewall of the shop is off on port 8444"
ADA = Provenance.typed_by("ada")


def stands(text: str = TEXT, project: int | None = None) -> bool:
    """Whether somebody stands behind a text in a project."""
    return text in vouched([text], project)


def known(**fields: object) -> Memory:
    """A memory that a session learned from outside text, and nobody confirmed."""
    return MemoryFactory(**{"observation": TEXT, "exposure": "outside", "provisional": "protection"} | fields)


def said(text: str = TEXT, **fields: object) -> Memory:
    """What a session that had read outside text says."""
    given = {"session_id": SessionFactory().pk, "tier": 1, "exposure": "outside", "exposed_to": ("WebFetch",)}
    stored = store.remember(
        Statement("timing", text, "jellyfin"), Provenance("run", "agent:research", **given | fields)
    )
    return Memory.objects.get(pk=stored.memory_id)


def bulk(action: str, *, by: str = "ada", **given: object) -> None:
    BULK_ACTIONS[action].run(Memory.objects.all(), by=by, **{"provenance": Provenance.typed_by(by)} | given)


def allowed() -> None:
    row = GateDecisionFactory(taxonomy="ops", category="timing", service="jellyfin", text=TEXT)
    store.allow_discarded(row, by="ada")


def test_each_verb_of_a_person_vouches_for_the_text(subtests) -> None:
    for about, act in {
        "typed": lambda: store.remember(Statement("timing", TEXT, "jellyfin"), ADA),
        "typed into a file": lambda: store.place(Statement("timing", TEXT, "jellyfin"), ADA),
        "approved": lambda: verbs.approve(known(), by="ada"),
        "approved, which the gate held": lambda: verbs.approve(known(verdict=Verdict.HOLD), by="ada"),
        "confirmed": lambda: verbs.confirm(known(), by="ada"),
        "edited": lambda: verbs.edit(known(observation=OTHER), by="ada", observation=TEXT, provenance=ADA),
        "moved, which confirms it": lambda: verbs.edit(known(), by="ada", category="behavior", provenance=ADA),
        "approved with others": lambda: known() and bulk("approve"),
        "confirmed with others": lambda: known() and bulk("confirm"),
        "allowed, which the gate had discarded": allowed,
    }.items():
        with subtests.test(about):
            VouchedText.objects.all().delete()
            MemoryChange.objects.all().delete()
            Memory.objects.all().delete()
            act()
            assert stands() and not stands(OTHER)
            assert VouchedText.objects.get().by == "ada"


def test_taking_the_memory_out_or_the_decision_back_withdraws_it(subtests) -> None:
    for about, act in {
        "deactivated": lambda one: verbs.deactivate(one, by="bob"),
        "edited to be off": lambda one: verbs.edit(one, by="bob", active=False, provenance=ADA),
        "deleted": lambda one: delete(one, by="bob"),
        "deactivated with others": lambda one: bulk("deactivate", by="bob"),
        "deleted with others": lambda one: bulk("delete", by="bob"),
        "an approval taken back": lambda one: restore(one, MemoryChange.objects.latest("pk"), by="bob"),
        "with others": lambda one: undo(MemoryChange.objects.latest("pk"), by="bob"),
    }.items():
        with subtests.test(about):
            VouchedText.objects.all().delete()
            memory = known()
            verbs.approve(memory, by="ada")
            assert stands()
            act(memory)
            assert not stands()
            Memory.objects.all().delete()


def test_neither_a_session_nor_the_system_vouches_or_withdraws(subtests) -> None:
    session = SessionFactory().pk
    for about, by, more in [
        ("an agent", "agent:research", {}),
        ("a session", "session:7", {}),
        ("a person's name in a session", "ada", {"session_id": session}),
        ("the system", "system", {}),
        ("an import", "import", {}),
        ("a client of MCP", "mcp", {}),
        ("a model", "triage:small", {}),
        ("nobody", "", {}),
    ]:
        with subtests.test(about):
            VouchedText.objects.all().delete()
            memory = known()
            if not more:
                verbs.approve(memory, by=by)
                verbs.edit(memory, by=by, observation=OTHER)
            verbs.reinforce(memory, by=by, **more)
            assert not VouchedText.objects.exists()
            vouch([memory.observation], None, by="ada", at=timezone.now())
            verbs.deactivate(memory, by=by, **more)
            assert stands(memory.observation), "what a person said stays"
            Memory.objects.all().delete()
    said()
    said("The suite takes 4 minutes", exposure="nothing", exposed_to=())
    assert VouchedText.objects.count() == 1


def test_no_token_vouches_or_withdraws() -> None:
    verbs.approve(known(), by="token laptop")
    assert not VouchedText.objects.exists()
    vouch([TEXT], None, by="ada", at=timezone.now())
    verbs.deactivate(known(), by="token laptop")
    assert stands()


def test_an_uncommitted_line_of_a_file_vouches_for_nothing() -> None:
    line = Provenance("import", "file", exposure="outside", channel="file")
    verbs.edit(known(observation=OTHER), by="file", observation=TEXT, provenance=line)
    assert not stands()


def test_other_words_or_numbers_are_another_text(subtests) -> None:
    vouch([TEXT], None, by="ada", at=timezone.now())
    for same in (TEXT, TEXT.upper(), f"  {TEXT.replace(' ', '  ')}\n", TEXT.replace("shop", "sh\u200bop")):
        with subtests.test(same):
            assert stands(same)
    for other in (
        OTHER,
        f"{TEXT}.",
        f"{TEXT}!",
        f"{TEXT} and 8444",
        TEXT.replace("off", "on"),
        TEXT.replace("is", "is not"),
        TEXT.replace("o", "\u043e"),
        TEXT.removeprefix("The "),
        "",
    ):
        with subtests.test(other):
            assert not stands(other)
    assert vouched([TEXT, OTHER], None).keys() == {TEXT}
    vouch(["", TEXT], None, by="bob", at=timezone.now())
    assert VouchedText.objects.get().by == "ada", "the first who said so stays"


def test_a_text_of_all_projects_counts_in_each_and_one_of_a_project_there_alone() -> None:
    shop, other = ProjectFactory(), ProjectFactory()
    vouch([TEXT], None, by="ada", at=timezone.now())
    vouch([OTHER], shop.pk, by="ada", at=timezone.now())
    assert [stands(TEXT, one) for one in (None, shop.pk, other.pk)] == [True, True, True]
    assert [stands(OTHER, one) for one in (None, shop.pk, other.pk)] == [False, True, False]
    of_shop = known(project=shop)
    verbs.approve(of_shop, by="ada")
    verbs.deactivate(of_shop, by="ada")
    assert stands(TEXT, shop.pk), "what is said to all projects stays"
    everywhere = known()
    verbs.approve(everywhere, by="ada")
    vouch([TEXT], shop.pk, by="ada", at=timezone.now())
    delete(everywhere, by="ada")
    assert [stands(TEXT, one) for one in (None, shop.pk, other.pk)] == [False, True, False]
    shop.memories.all().delete()
    shop.delete()
    assert not VouchedText.objects.exists()


def test_a_session_that_says_it_later_is_confirmed_and_an_operator_s_at_once() -> None:
    shop = ProjectFactory()
    vouch([TEXT], shop.pk, by="ada", at=timezone.now())
    row = VouchedText.objects.get()
    mine = said(TEXT.upper(), project_id=shop.pk)
    assert (mine.confirmed_at, mine.trust, mine.provisional, mine.unconfirmed) == (row.at, Trust.OPERATOR, "", "")
    for foreign in (said(OTHER, project_id=shop.pk), said(TEXT, project_id=ProjectFactory().pk), said(TEXT)):
        assert foreign.confirmed_at is None and foreign.trust == Trust.EXTERNAL and foreign.unconfirmed


def test_a_text_that_was_purged_is_refused_though_somebody_stands_behind_it() -> None:
    vouch([TEXT], None, by="ada", at=timezone.now())
    forgotten.forget([TEXT], Purge.objects.create(by="ops").pk, at=timezone.now())
    stored = store.remember(Statement("timing", TEXT, "jellyfin"), Provenance("run", "agent:research"))
    assert (stored.outcome, stored.is_forgotten) == ("discarded", True)
    with pytest.raises(InvalidMemory, match="purged"):
        store.remember(Statement("timing", TEXT, "jellyfin"), ADA)
    assert not Memory.objects.exists()


def test_what_the_gate_holds_is_vouched_for_by_an_approval_alone() -> None:
    for act in (
        lambda one: verbs.edit(one, by="ada", category="behavior", provenance=ADA),
        lambda one: bulk("reassign", category="behavior"),
    ):
        memory = known(verdict=Verdict.HOLD)
        act(memory)
        memory.refresh_from_db()
        assert (memory.verdict, memory.category) == (Verdict.HOLD, "behavior")
        assert not stands()


def test_a_correction_withdraws_the_old_text() -> None:
    memory = known()
    verbs.approve(memory, by="ada")
    verbs.edit(memory, by="ada", observation=OTHER, provenance=ADA)
    assert stands(OTHER) and not stands(TEXT)


def test_a_memory_that_moves_is_vouched_for_where_it_is() -> None:
    shop, other = ProjectFactory(), ProjectFactory()
    memory = known(project=shop)
    verbs.approve(memory, by="ada")
    verbs.edit(memory, by="ada", project=other.pk, provenance=ADA)
    assert stands(TEXT, other.pk) and not stands(TEXT, shop.pk)


@pytest.mark.django_db(transaction=True)
def test_two_people_who_vouch_at_once_leave_one_row() -> None:
    shop = ProjectFactory()
    both, texts = Barrier(2), [f"Port {number} is the shop's" for number in range(50)]

    def say(by: str) -> None:
        both.wait(timeout=30)
        try:
            vouch(texts, None, by=by, at=timezone.now())
            vouch(texts, shop.pk, by=by, at=timezone.now())
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(say, ("ada", "bob")))
    assert VouchedText.objects.filter(project=None).count() == len(texts)
    assert VouchedText.objects.filter(project=shop).count() == len(texts)
