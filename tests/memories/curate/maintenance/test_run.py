"""The nightly maintenance: what each step does, once a night."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from memories.curate.maintenance import begin_by_hand, dry_run, go_on, maintain_due, maintain_now, undo, undo_until
from memories.curate.maintenance import steps as steps_module
from memories.errors import Conflict, InvalidMemory
from memories.lifecycle import verbs
from memories.models import (
    Change,
    Disagreement,
    Embedding,
    Inactive,
    MaintenanceRun,
    Memory,
    MemoryChange,
    TelemetryRecord,
    Trust,
)
from memories.models.recalled import Recalled
from memories.recall import log
from tests.memories.curate.maintenance.house import AT, SAME, dump, fill, knowledge
from tests.support.factories import MemoryFactory
from tests.support.models_http import embedded_by

pytestmark = pytest.mark.django_db(transaction=True)


def figures(run: MaintenanceRun) -> dict[str, int]:
    return {row.name: row.counts.get("did") for row in run.steps.order_by("position")}


def test_each_step_does_its_work_and_says_how_much():
    fill()
    run = maintain_due(at=AT)
    assert run is not None and run.state == "done" and str(run.night) == "2026-11-20"
    assert figures(run) == {
        "expired": 1,
        "lowered": 1,
        "merged": 1,
        "stale": 1,
        "closed": 1,
        "proposals": 0,
        "discards": 0,
        "judged": 0,
        "categories": 0,
    }
    assert Memory.objects.get(observation__startswith="Host 0 swaps").confidence == 0.5
    assert Memory.objects.get(observation__startswith="Invoices").inactive_reason == Inactive.CLOSED
    assert Memory.objects.get(observation__startswith="The owner").stale_at == AT
    assert TelemetryRecord.objects.get(action="memory.maintain.completed").metadata["merged"] == 1


def test_twice_in_a_night_is_once():
    fill()
    first = maintain_due(at=AT)
    before = dump()
    assert maintain_due(at=AT + timedelta(hours=2)) is None
    assert dump() == before
    assert list(MaintenanceRun.objects.all()) == [first]


def test_a_night_that_is_not_due_yet_or_long_over_is_not_run():
    maintain_due(at=AT)
    assert maintain_due(at=AT + timedelta(hours=23)) is None
    assert maintain_due(at=AT + timedelta(days=2, hours=21)) is None
    assert maintain_due(at=AT + timedelta(days=3)) is not None


def test_a_second_worker_leaves_the_run_of_the_first_alone(at):
    run = begin_by_hand(by="paula", at=at)
    MaintenanceRun.objects.filter(pk=run.pk).update(claimed_by="other", claimed_until=at + timedelta(minutes=1))
    assert go_on(run, at=at) is None
    with pytest.raises(Conflict):
        maintain_now(by="paula", at=at)
    assert go_on(run, at=at + timedelta(minutes=2)).state == "done"


def test_a_run_out_of_time_is_gone_on_with():
    fill(3)
    run = maintain_due(at=AT, seconds=-1)
    assert run.state == "running" and not run.claimed_by
    assert maintain_due(at=AT, seconds=None).state == "done"
    assert MaintenanceRun.objects.count() == 1


@pytest.fixture
def model(settings):
    with embedded_by(settings) as (_, model):
        yield model


class TestDuplicates:
    def two(self, **second):
        one = MemoryFactory(observation=SAME, updated_at=AT)
        return one, MemoryFactory(**{"observation": SAME, "updated_at": AT, **second})

    def test_the_weaker_is_given_up_for_the_stronger(self):
        one, two = self.two(confidence=0.9)
        maintain_due(at=AT)
        one.refresh_from_db()
        assert (one.active, one.superseded_by_id) == (False, two.pk)

    def test_a_less_trusted_one_takes_no_place(self):
        one, two = self.two(confidence=1.0, trust=Trust.EXTERNAL)
        maintain_due(at=AT)
        two.refresh_from_db()
        assert (two.active, two.superseded_by_id) == (False, one.pk)

    def test_two_of_a_person_become_a_question(self):
        one, two = self.two(source="human", trust=Trust.OPERATOR)
        Memory.objects.filter(pk=one.pk).update(source="human", trust=Trust.OPERATOR)
        maintain_due(at=AT)
        assert Memory.objects.filter(active=True).count() == 2
        assert (Disagreement.objects.get().older_id, Disagreement.objects.get().newer_id) == (one.pk, two.pk)

    def test_a_merge_confirms_nothing(self):
        self.two()
        Memory.objects.update(updated_at=AT - timedelta(days=20))
        maintain_due(at=AT)
        assert Memory.objects.get(active=True).updated_at == AT - timedelta(days=20)

    def test_another_agent_and_another_project_keep_theirs(self):
        self.two(agent="homelab-watch")
        maintain_due(at=AT)
        assert Memory.objects.filter(active=True).count() == 2

    def pair(self, model, text, other, **second):
        """Two confirmed memories that were written while no vectors were there, and got them later."""
        given = {"confirmed_at": AT, "updated_at": AT, "service": None, "category": "timing"}
        one = MemoryFactory(**given, observation=text)
        two = MemoryFactory(**{**given, "observation": other, **second})
        vectors = np.zeros((2, model.dimensions), dtype="<f4")
        vectors[0, 0], vectors[1, 0], vectors[1, 1] = 1, 0.97, (1 - 0.97**2) ** 0.5
        for memory, vector in zip((one, two), vectors, strict=True):
            Embedding.objects.create(memory=memory, model=model, vector=vector.tobytes(), content_hash="")
        return one, two

    @pytest.mark.parametrize(
        "second",
        [{}, {"category": "behavior"}, {"service": "proxy"}, {"service": "proxy", "category": "maintenance"}],
        ids=str,
    )
    def test_two_of_one_meaning_that_no_vectors_compared_when_they_were_written_are_found(self, model, second):
        one, two = self.pair(
            model,
            "The proxy reloads its certificates on Sundays",
            "The proxy reloads its certificates every Sunday",
            **second,
        )
        done = maintain_due(at=AT)
        assert done.state == "done"
        if second:
            asked = Disagreement.objects.get()
            assert (asked.older_id, asked.newer_id, asked.kind) == (one.pk, two.pk, "duplicate")
            assert asked.evidence["cosine"] >= 0.93
            maintain_due(at=AT + timedelta(days=1))
            assert Disagreement.objects.count() == 1
        assert Memory.objects.filter(active=True).count() == (2 if second else 1)

    @pytest.mark.parametrize(
        ("other", "second"),
        [
            ("The proxy reloads its certificates every Sunday", {"agent": "other"}),
            ("The proxy reloads its certificates every Sunday", {"service": "mail", "taxonomy": "project"}),
            ("The mail server reloads its certificates on Sundays", {"category": "behavior"}),
            ("The proxy never reloads its certificates on Sundays", {"category": "behavior"}),
        ],
        ids=str,
    )
    def test_another_fact_of_another_category_stays_without_a_question(self, model, other, second):
        self.pair(model, "The proxy reloads its certificates on Sundays", other, **second)
        maintain_due(at=AT)
        assert Memory.objects.filter(active=True).count() == 2
        assert not Disagreement.objects.filter(kind="duplicate").exists()

    def test_one_text_of_two_services_is_two_facts(self, model):
        self.pair(model, "Needs a minute after a restart", "Needs a minute after a restart", service="mail")
        Memory.objects.filter(service=None).update(service="proxy")
        maintain_due(at=AT)
        assert not Disagreement.objects.exists() and Memory.objects.filter(active=True).count() == 2

    def test_the_sweep_goes_on_where_the_last_night_ended(self, monkeypatch):
        monkeypatch.setattr(steps_module.duplicates, "LOOKED_AT", 2)
        monkeypatch.setattr(steps_module.duplicates, "BATCH", 2)
        rows = [MemoryFactory(observation=f"Rack {n} is in room {n}", updated_at=AT) for n in range(3)]
        first = maintain_due(at=AT)
        assert first.steps.get(name="merged").cursor["after"] == rows[1].pk
        second = maintain_due(at=AT + timedelta(days=1))
        assert second.steps.get(name="merged").cursor == {"after": 0, "ended": True, "looked": 1, "asked": 0}


class TestStale:
    def test_a_recall_takes_it_back(self):
        row = knowledge(100, "The owner of the rack is the network team", stale_at=AT)
        Recalled.objects.create(query="rack", hits=[[row.pk, 0.9]], surface="web", at=AT)
        log.count()
        row.refresh_from_db()
        assert (row.stale_at, row.recall_count) == (None, 1)

    def test_a_confirmation_takes_it_back(self):
        row = knowledge(100, "The owner of the rack is the network team", stale_at=AT)
        verbs.reinforce(row, by="agent:x", at=AT)
        assert row.stale_at is None

    def test_what_became_stale_tonight_is_closed_no_earlier_than_tomorrow(self):
        row = knowledge(300, "The owner of the rack is the network team")
        maintain_due(at=AT)
        row.refresh_from_db()
        assert row.active
        maintain_due(at=AT + timedelta(days=1))
        row.refresh_from_db()
        assert not row.active


class TestDryRun:
    def test_it_says_exactly_what_the_run_does_and_writes_nothing(self):
        fill(3)
        before = dump()
        planned = {one.name: one for one in dry_run(at=AT)}
        assert dump() == before and not MaintenanceRun.objects.exists()
        run = maintain_due(at=AT)
        for step in steps_module.STEPS:
            if step.kind is None:
                continue
            done = steps_module.changed_memories(run, step)
            assert {(pk, reason) for pk, _, reason in planned[step.name].changes} == set(
                done.values_list("memory", "reason")
            ), step.name
            assert planned[step.name].did == run.steps.get(name=step.name).counts["did"]


class TestUndo:
    def test_all_of_it_is_as_it_was(self):
        fill(2)
        columns = ("pk", "active", "inactive_reason", "confidence", "stale_at", "superseded_by", "merged_count")
        before = list(Memory.objects.order_by("pk").values_list(*columns))
        run = maintain_due(at=AT)
        later = AT + timedelta(hours=5)
        done = undo(run, by="paula", at=later)
        assert done.back == 12 and not done.changed_since
        assert list(Memory.objects.order_by("pk").values_list(*columns)) == before
        run.refresh_from_db()
        assert run.undone_by == "paula"
        again = undo(run, by="paula", at=later)
        assert (again.back, again.already) == (0, 12)
        assert MemoryChange.objects.filter(kind=Change.RESTORED).count() == 12

    def test_the_next_night_does_not_do_it_again(self):
        fill()
        run = maintain_due(at=AT)
        undo(run, by="paula", at=AT + timedelta(hours=5))
        after = maintain_due(at=AT + timedelta(days=1))
        assert {name: did for name, did in figures(after).items() if did} == {}
        assert Disagreement.objects.get().judged_at is not None

    def test_one_step_alone(self):
        fill()
        run = maintain_due(at=AT)
        assert undo(run, "merged", by="paula", at=AT + timedelta(hours=1)).back == 2
        assert Memory.objects.filter(observation=SAME, active=True).count() == 2
        assert Memory.objects.get(observation__startswith="Host 0 swaps").confidence == 0.5
        assert undo(run, by="paula", at=AT + timedelta(hours=1)).back == 4

    def test_what_somebody_changed_since_is_left_alone(self):
        fill()
        run = maintain_due(at=AT)
        winner = Memory.objects.get(observation=SAME, active=True)
        verbs.set_confidence(winner, 0.8, by="otto", at=AT + timedelta(hours=1))
        done = undo(run, by="paula", at=AT + timedelta(hours=2))
        assert (done.back, done.changed_since) == (4, 2)  # a merge goes back whole or not at all
        winner.refresh_from_db()
        assert winner.confidence == 0.8

    def test_only_until_the_next_night(self):
        run = maintain_due(at=AT)
        assert undo_until(run) == AT + timedelta(days=1)
        with pytest.raises(Conflict):
            undo(run, by="paula", at=AT + timedelta(days=1))

    def test_a_step_that_changes_no_memory_has_no_undo(self):
        run = maintain_due(at=AT)
        with pytest.raises(InvalidMemory):
            undo(run, "judged", by="paula", at=AT)
