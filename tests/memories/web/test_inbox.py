"""`/inbox`: what waits, decisions on one and on many, what others decided meanwhile, and the way back."""

from __future__ import annotations

import pytest

from memories import inbox
from memories.inbox.kinds import next_prompt
from memories.injection.ops import budget_for, build
from memories.lifecycle import disagreements, verbs
from memories.models import Inactive, Memory, Verdict
from tests.memories.people import HTMX, signed_in
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def held():
    return [MemoryFactory(observation=f"Fact {n} <b>", verdict=Verdict.HOLD) for n in range(3)]


@pytest.fixture
def contradiction():
    return disagreements.note(
        MemoryFactory(observation="Waits 25 s"), MemoryFactory(observation="Waits 40 s"), "contradiction"
    )


def pick_of(kind, pk):
    return inbox.KINDS[kind].item(pk)["row"].pick


def decide(client, decision, *picks, **more):
    return client.post("/inbox/decide", {"decision": decision, "pick": list(picks), **more}, headers=HTMX)


def test_one_queue_and_one_count(held, contradiction):
    html = signed_in("operator").get("/inbox").content.decode()
    assert '<span class="side-count">4</span>' in html
    assert "Which of these two holds?" in html
    assert "<del>25</del>" in html
    assert "Fact 2 &lt;b&gt;" in html
    assert inbox.counts() == {"contradiction": 1, "duplicate": 0, "proposals": 0, "held": 3, "unconfirmed": 0}


def test_many_are_approved_at_once_and_taken_back_at_once(held):
    client = signed_in("operator", "ann")
    html = decide(client, "held.approve", *(pick_of("held", one.pk) for one in held)).content.decode()
    assert "3 approved." in html
    assert "Nothing waits for a person." in html
    undo = html.partition('hx-post="/inbox/undo/')[2].partition('"')[0]
    assert "3 memories are as they were before." in client.post(f"/inbox/undo/{undo}", headers=HTMX).content.decode()
    assert inbox.counts()["held"] == 3


def test_who_comes_second_is_told_who_decided_and_changes_nothing(held, contradiction):
    first, second = held[0], held[1]
    late, fresh = pick_of("held", first.pk), pick_of("held", second.pk)
    question = pick_of("contradiction", contradiction.pk)
    verbs.deactivate(first, by="bob")
    disagreements.answer(contradiction, "both", by="bob")
    client = signed_in("operator", "ann")
    html = decide(client, "held.approve", late, fresh).content.decode()
    assert f"1 approved. Memory {first.pk} was deactivated by bob meanwhile." in html
    first.refresh_from_db()
    assert (first.verdict, first.inactive_reason) == (Verdict.HOLD, Inactive.OPERATOR)
    assert "bob answered meanwhile: both hold" in decide(client, "contradiction.both", question).content.decode()


def test_a_text_that_changed_since_it_was_read_is_not_approved(held):
    seen = pick_of("held", held[0].pk)
    verbs.edit(held[0], by="agent:x", confidence=0.9)
    decide(signed_in("operator"), "held.approve", seen)
    assert Memory.objects.get(pk=held[0].pk).verdict == Verdict.HOLD


def test_without_a_script_the_decision_leads_to_the_next_item_and_its_undo_works(contradiction):
    client = signed_in("operator")
    given = {"decision": "contradiction.wrong", "pick": pick_of("contradiction", contradiction.pk), "view": "held"}
    answer = client.post("/inbox/decide", given)
    assert (answer.status_code, answer.url) == (302, "/inbox?view=held")
    assert client.post(f"/inbox/undo/contradiction/{contradiction.pk}").status_code == 302
    assert inbox.counts()["contradiction"] == 1


def test_a_view_shows_both_kinds_of_disagreements_and_an_unknown_one_shows_all(held, contradiction):
    disagreements.note(
        MemoryFactory(observation="Media is purged"), MemoryFactory(observation="Old media goes"), "duplicate"
    )
    client = signed_in("operator")
    html = client.get("/inbox?view=disagreements").content.decode()
    assert "Contradictions" in html
    assert "Suspected duplicates" in html
    assert "Fact 2" not in html
    assert "Fact 2" in client.get("/inbox?view=nothing").content.decode()


def test_answered_ones_are_listed_and_an_answer_is_taken_back_from_there(contradiction):
    client = signed_in("operator", "ann")
    disagreements.answer(contradiction, "wrong", by="ann")
    html = client.get("/inbox?view=answered").content.decode()
    assert "The newer is wrong" in html
    assert f'action="/inbox/undo/contradiction/{contradiction.pk}"' in html
    assert "No earlier answers." in client.get(f"/inbox?view=answered&after={contradiction.pk}").content.decode()
    client.post(f"/inbox/undo/contradiction/{contradiction.pk}", {"view": "answered"}, headers=HTMX)
    assert inbox.counts()["contradiction"] == 1


def test_the_next_prompt_shows_the_line_of_an_approved_memory_between_its_neighbours(held):
    for name in ("a", "z"):
        MemoryFactory(service="jellyfin", observation=f"Known {name}", confidence=0.9 if name == "a" else 0.4)
    memory = Memory.objects.get(pk=held[0].pk)
    coming = next_prompt(memory)
    assert [line.kind for line in coming.lines] == ["same", "new", "same"]
    assert "Known a" in coming.lines[0].text
    assert "Known z" in coming.lines[2].text
    verbs.approve(memory, by="ann")
    block = build(budget=budget_for()).text.split("\n")
    assert [block[line.place - 1] for line in coming.lines] == [line.text for line in coming.lines]


def test_the_next_prompt_shows_what_goes_when_the_new_one_is_taken(contradiction):
    question = inbox.KINDS["contradiction"].item(contradiction.pk)
    kinds = {line.kind: line.text for line in question["next_prompt"].lines}
    assert "Waits 25 s" in kinds["gone"]
    assert "Waits 40 s" in kinds["new"]
    html = signed_in("operator").get("/inbox").content.decode()
    assert "when the new one is taken" in html


def test_the_next_prompt_says_why_a_memory_would_not_be_in_it(settings):
    weak = MemoryFactory(verdict=Verdict.HOLD, confidence=0.1)
    assert next_prompt(weak).why_not == "Its confidence is below 0.3."
    settings.CLAUDEOPS_MEMORY_BUDGET = 20
    long = MemoryFactory(verdict=Verdict.HOLD, observation="word " * 60)
    assert "The budget of 20 tokens is full" in next_prompt(long).why_not


HUGE = "9" * 30
GIVEN = [
    {},
    {"decision": "held.eat"},
    {"decision": "held.approve", "pick": "held-x-1"},
    {"decision": "held.approve", "pick": f"held-{HUGE}-1"},
    {"decision": "held.approve", "pick": f"held-1-{HUGE}"},
]


@pytest.mark.parametrize("given", GIVEN)
def test_what_cannot_be_read_changes_nothing(held, given):
    assert "Nothing was changed." in signed_in("operator").post("/inbox/decide", given, headers=HTMX).content.decode()
    assert inbox.counts()["held"] == 3


@pytest.mark.parametrize("token", [HUGE, f"1.{HUGE}", "x", "9" * 5000])
@pytest.mark.parametrize("kind", inbox.KINDS)
def test_an_undo_of_nothing_says_so(held, kind, token):
    answer = signed_in("operator").post(f"/inbox/undo/{kind}/{token}", headers=HTMX)
    assert answer.status_code == 200
    assert 'class="warn"' in answer.content.decode()


def test_an_item_that_does_not_exist_shows_the_first(held):
    assert "Fact 2 &lt;b&gt;" in signed_in("operator").get(f"/inbox?item=held-{HUGE}").content.decode()


def test_a_viewer_sees_and_cannot_decide(held):
    viewer = signed_in("viewer")
    assert "Only operators can decide." in viewer.get("/inbox").content.decode()
    assert decide(viewer, "held.approve", pick_of("held", held[0].pk)).status_code == 403
    assert viewer.post("/inbox/undo/held/1").status_code == 403
