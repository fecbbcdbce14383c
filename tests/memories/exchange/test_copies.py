"""Promote a project's memory, and copy it to another project."""

from __future__ import annotations

import pytest

from memories.capture.statement import Provenance
from memories.errors import InvalidMemory
from memories.exchange.copies import copy_to
from memories.lifecycle import undo, verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.models import Disagreement, Inactive, Memory, MemoryChange
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
TYPED = Provenance.typed_by("ann")


@pytest.fixture
def web():
    return ProjectFactory(slug="web")


@pytest.fixture
def shop():
    return ProjectFactory(slug="shop", default_expiry={"warning": 7})


def known(project, text="Migrations run before the deploy", **fields):
    return MemoryFactory(
        taxonomy="project", category="warning", service=None, project=project, observation=text, **fields
    )


def test_promote_makes_a_memory_global_and_keeps_its_history(web):
    memory = known(web)
    verbs.set_confidence(memory, 0.9, by="ann")
    change = verbs.promote(memory, by="ann")
    assert memory.project is None
    assert change.reason == "Promoted from project web to all projects."
    assert change.evidence == {"promoted_from": "web"}
    assert MemoryChange.objects.filter(memory=memory).count() == 2
    assert verbs.promote(memory, by="ann") is None


def test_promote_refuses_other_taxonomies_and_what_all_projects_are_told_already(web):
    with pytest.raises(InvalidMemory, match="taxonomy ops"):
        verbs.promote(MemoryFactory(project=web), by="ann")
    told, memory = known(None), known(web)
    with pytest.raises(InvalidMemory, match=f"Memory {told.pk} tells all projects this already"):
        verbs.promote(memory, by="ann")
    verbs.deactivate(told, by="ann")
    assert verbs.promote(memory, by="ann")


def test_many_are_promoted_and_taken_back_by_one_undo(web):
    rows = [known(web, text=f"Fact number {number}") for number in range(3)]
    MemoryFactory(project=web)
    done = BULK_ACTIONS["promote"].run(Memory.objects.all(), by="ann", provenance=TYPED)
    assert (done.changed, done.unchanged) == (3, 1)
    assert Memory.objects.filter(project=None).count() == 3
    assert undo.undo(done.change, by="ann").back == 3
    assert set(Memory.objects.filter(pk__in=[row.pk for row in rows]).values_list("project", flat=True)) == {web.pk}


def test_a_token_does_not_promote(web):
    known(web)
    with pytest.raises(InvalidMemory, match="Only a person"):
        BULK_ACTIONS["promote"].run(Memory.objects.all(), by="token x", provenance=Provenance("run", "token x"))
    assert Memory.objects.get().project == web


def test_a_copy_keeps_its_origin_its_history_and_gets_the_end_of_its_new_project(web, shop):
    memory = known(web, tags=["db"], confidence=0.6)
    verbs.set_confidence(memory, 0.9, by="ann")
    [done] = copy_to([memory], shop, by="bob")
    copy = Memory.objects.get(pk=done.memory_id)
    assert (copy.project, copy.confidence, copy.tags) == (shop, 0.9, ["db"])
    assert (copy.expires_at - copy.created_at).days == 7
    first = MemoryChange.objects.get(memory=copy)
    origin = first.evidence["copied_from"]
    assert (origin["uuid"], origin["project"]) == (str(memory.uuid), "web")
    assert [row["kind"] for row in origin["history"]] == ["confidence_set"]
    assert first.reason == f"Copied from project web, where it is memory {memory.pk}."
    assert Memory.objects.get(pk=memory.pk).project == web


def test_a_second_copy_finds_the_first_whatever_became_of_it(web, shop):
    memory = known(web)
    [first] = copy_to([memory], shop, by="bob")
    verbs.edit(first.memory_id, observation="Something else", by="bob", provenance=Provenance.typed_by("bob"))
    [second] = copy_to([memory], shop, by="bob")
    assert (second.memory_id, second.created) == (first.memory_id, False)
    assert Memory.objects.filter(project=shop).count() == 1


def test_a_text_that_the_project_has_already_is_not_stored_again(web, shop):
    there = known(shop, text="migrations run BEFORE the deploy")
    [done] = copy_to([known(web)], shop, by="bob")
    assert (done.memory_id, done.created) == (there.pk, False)
    assert not MemoryChange.objects.filter(memory=there).exists()


def test_a_copy_that_contradicts_opens_a_question_and_lowers_nothing(web, shop):
    there = known(shop, text="The deploy takes 5 minutes", confidence=0.8)
    [done] = copy_to([known(web, text="The deploy takes 45 minutes")], shop, by="bob")
    there.refresh_from_db()
    assert there.confidence == 0.8
    question = Disagreement.objects.get()
    assert (question.older_id, question.newer_id, question.kind) == (there.pk, done.memory_id, "contradiction")


@pytest.mark.parametrize("case", ["same project", "other taxonomy", "merged"])
def test_what_cannot_be_copied_is_named_and_nothing_is(web, shop, case):
    good = known(web)
    bad = {
        "same project": lambda: known(shop, text="Is there"),
        "other taxonomy": lambda: MemoryFactory(project=web),
        "merged": lambda: known(web, text="Gone", active=False, inactive_reason=Inactive.MERGED),
    }[case]()
    before = Memory.objects.filter(project=shop).count()
    with pytest.raises(InvalidMemory, match=f"Memory {bad.pk} "):
        copy_to([good, bad], shop, by="bob")
    assert Memory.objects.filter(project=shop).count() == before


def test_a_copy_is_trusted_as_its_original(web, shop):
    memory = known(web, source="run", exposure="outside", trust="operator")  # a person rewrote what a session said
    [done] = copy_to([memory], shop, by="bob")
    assert Memory.objects.get(pk=done.memory_id).trust == "operator"
