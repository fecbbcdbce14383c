"""`manage.py memory held` and `memory discarded`."""

from __future__ import annotations

from functools import partial

import pytest

from memories.models import GateDecision, Memory
from memories.store import Provenance, Statement, remember
from tests.support import commands
from tests.support.factories import FactFactory, MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
ADDRESS = "The health page of vault is https://vault.example/v1/sys/health"
NARRATION = "The user asked to keep the old queue for the nightly jobs"


run, document = partial(commands.run, "memory"), partial(commands.document, "memory")


def observed(text, project=None, channel="observer"):
    said = Provenance("run", "session:abc", project_id=project and project.pk, channel=channel)
    return remember(Statement("operations", text, None, "knowledge"), said)


@pytest.fixture
def held():
    return Memory.objects.get(pk=observed(ADDRESS).memory_id)


def verdicts():
    return dict(Memory.objects.values_list("observation", "verdict"))


def test_held_lists_the_text_the_reason_the_source_and_the_nearest_known_memory(held):
    known = MemoryFactory(
        taxonomy="knowledge",
        category="operations",
        service=None,
        observation="The health page of vault is https://vault.example/v1/sys/state",
    )
    fact = FactFactory(memory=held, turn=12, excerpt="Look at the health\npage of vault", outcome="held")
    code, out, _ = run("held", "list")
    assert code == 0
    assert f"{held.pk}  {ADDRESS}" in out
    assert "held: it holds an address of the web; read before: nothing from outside" in out
    assert f"source: turn 12 of {fact.source}: Look at the health page of vault" in out
    assert f"nearest: memory {known.pk} " in out
    assert "[-state-]{+health+}" in out
    _, answer = document("held", "list")
    (one,) = answer["result"]["memories"]
    assert (one["id"], one["source"]["turn"], one["nearest"]["memory"]["id"]) == (held.pk, 12, known.pk)


def test_held_lists_what_the_filters_find(held):
    other = observed("The volumes go away with docker compose down -v", ProjectFactory(slug="shop"))
    assert document("held", "list")[1]["result"]["count"] == 2
    for options in (("--because", "command"), ("--project", "shop"), ("--text", "volumes")):
        _, answer = document("held", "list", *options)
        assert [one["id"] for one in answer["result"]["memories"]] == [other.memory_id]
    assert "1 of 2; --limit shows more." in run("held", "list", "--limit", 1)[1]
    assert run("held", "list", "--text", "nowhere")[1] == "Nothing is held.\n"


@pytest.mark.parametrize(
    ("action", "label", "word"), [("allow", "released", "allowed"), ("discard", "discarded", "discarded")]
)
def test_held_ones_are_decided_by_their_numbers(held, action, label, word):
    code, out, _ = run("held", action, held.pk, held.uuid, "--by", "ann")
    first, second = out.splitlines()
    assert (code, first) == (0, f"1 memory {word}.")
    held.refresh_from_db()
    assert (held.verdict, held.active, held.awaits_review) == (
        ("allow", True, False) if action == "allow" else ("hold", False, False)
    )
    assert (GateDecision.objects.get().label, GateDecision.objects.get().labelled_by) == (label, "ann")
    code, out, _ = run(*second.removeprefix("To take it back: manage.py memory ").split(), "--by", "bob")
    assert (code, out) == (0, "1 memory is as it was before.\n")
    held.refresh_from_db()
    assert held.awaits_review
    assert (GateDecision.objects.get().label, GateDecision.objects.get().labelled_by) == ("undone", "bob")


def test_all_that_match_are_decided_with_yes_alone(held):
    observed("The volumes go away with docker compose down -v")
    options = ("held", "allow", "--all-matching", "--because", "url")
    assert run(*options)[1] == "1 memory would be allowed. Add --yes to do it.\n"
    assert set(verdicts().values()) == {"hold"}
    assert run(*options, "--yes")[1].startswith("1 memory allowed.\n")
    assert verdicts()[ADDRESS] == "allow"
    assert sorted(verdicts().values()) == ["allow", "hold"]


def test_a_held_one_is_corrected_and_allowed(held):
    code, out, _ = run("held", "edit", held.pk, "--observation", "Vault has a health page", "--by", "ann")
    assert (code, out) == (0, f"Memory {held.pk} is corrected and allowed: Vault has a health page\n")
    held.refresh_from_db()
    assert (held.verdict, held.observation) == ("allow", "Vault has a health page")
    assert GateDecision.objects.get().label == "edited"


def test_wrong_input_is_named_and_nothing_is_decided(held):
    allowed = MemoryFactory()
    for arguments, words in (
        (("allow",), "Give IDs or --all-matching, one of the two."),
        (("allow", held.pk, "--all-matching"), "Give IDs or --all-matching, one of the two."),
        (("allow", held.pk, allowed.pk), f"Memory {allowed.pk} is not held for review."),
        (("allow", held.pk, 99999), "There is no memory 99999."),
        (("edit", held.pk), "edit takes one ID and --observation TEXT."),
        (("discard", held.pk, "--observation", "x"), "--observation goes with edit alone."),
        (("list", "--limit", 0), "--limit is 0; allowed is 1 to 200."),
        (("list", "--category", "none"), "--category is 'none'"),
        (("undo", "x"), "undo takes the number that allow or discard printed."),
        (("undo", 99999), "There is no change 99999."),
    ):
        code, _, err = run("held", *arguments)
        assert code == 1
        assert words in err
    held.refresh_from_db()
    assert held.awaits_review


def test_discards_are_listed_and_allowed():
    shop = ProjectFactory(slug="shop")
    observed(NARRATION, shop)
    observed("The import is now at 45 %", channel="mcp")
    row = GateDecision.objects.get(text=NARRATION)
    _, out, _ = run("discarded", "list")
    assert f"{row.pk}  {NARRATION}" in out
    assert "over observer: it narrates what was done" in out
    for options in (("--because", "narration"), ("--channel", "observer"), ("--project", "shop"), ("--text", "QUEUE")):
        _, answer = document("discarded", "list", *options)
        assert [one["id"] for one in answer["result"]["discards"]] == [row.pk]
    code, out, _ = run("discarded", "allow", row.pk, "--by", "ann")
    assert (code, out) == (0, "1 text allowed.\n")
    memory = Memory.objects.get()
    assert (memory.observation, memory.verdict, memory.project) == (NARRATION, "allow", shop)
    assert document("discarded", "list")[1]["result"]["count"] == 1
    code, _, err = run("discarded", "allow", row.pk)
    assert code == 1
    assert f"Decision {row.pk} was allowed already, as memory {memory.pk}." in err
    assert run("discarded", "undo", row.pk)[1] == "1 text undecided again.\n"
    assert not Memory.objects.get().active
    assert document("discarded", "list")[1]["result"]["count"] == 2


def test_discards_are_confirmed_and_corrected():
    observed(NARRATION)
    observed("The import is now at 45 %")
    first, second = GateDecision.objects.order_by("pk")
    assert run("discarded", "confirm", "--all-matching")[1] == (
        "2 texts would be confirmed as discards. Add --yes to do it.\n"
    )
    assert run("discarded", "confirm", second.pk, "--by", "ann")[1] == "1 text confirmed as discards.\n"
    second.refresh_from_db()
    assert (second.label, second.labelled_by) == ("discarded", "ann")
    assert run("discarded", "undo", second.pk)[1] == "1 text undecided again.\n"
    run("discarded", "confirm", second.pk)
    run("discarded", "allow", first.pk, "--observation", "The nightly jobs keep the old queue", "--by", "ann")
    assert Memory.objects.get().observation == "The nightly jobs keep the old queue"
    assert document("discarded", "list")[1]["result"]["count"] == 0


def test_wrong_input_of_discards_is_named(held):
    row = GateDecision.objects.get()
    for arguments, words in (
        (("allow",), "Give IDs or --all-matching, one of the two."),
        (("allow", "x"), "'x' is not the number of a discard."),
        (("allow", 99999), "There is no decision 99999 of the gate."),
        (("allow", row.pk), f"Decision {row.pk} is no discard."),
        (("confirm", row.pk), f"Decision {row.pk} is no discard."),
        (("undo", row.pk), f"Decision {row.pk} is no discard that was allowed."),
        (("undo", "--all-matching"), "undo takes IDs."),
        (("list", "--project", "nowhere"), "nowhere"),
        (("confirm", "--all-matching", "--observation", "x"), "--observation goes with one ID to allow."),
    ):
        code, _, err = run("discarded", *arguments)
        assert code == 1
        assert words in err
