"""Each stage of the memory pipeline leaves one record of what it did, and a quiet run none."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from memories.lifecycle.sweep import sweep
from memories.models import ModelCall, Recalled, TelemetryRecord
from memories.observe import pipeline
from memories.observe.turns import PartTurns, TurnKind
from memories.tasks import keep_recall
from memories.telemetry import record
from tests.memories.llm.conftest import recordings  # noqa: F401  # a fixture
from tests.memories.observe.conftest import ASKED, AT, FACT, World, answer, turns, world  # noqa: F401  # a fixture
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

STAGES = ("prepare", "observe", "parse", "classify", "gate", "match", "store")


def actions() -> list[str]:
    return list(TelemetryRecord.objects.order_by("pk").values_list("action", flat=True))


def test_each_stage_of_observing_leaves_one_record_with_its_counts(world: World):  # noqa: F811
    world.add(turns((TurnKind.USER, ASKED), (TurnKind.AGENT, "Done.")), answer(FACT))
    world.drain(at=AT)
    world.drain(at=AT)
    assert actions() == [f"memory.{stage}.completed" for stage in STAGES]
    gate = TelemetryRecord.objects.get(action="memory.gate.completed")
    assert (gate.component, gate.source, gate.success, gate.level, gate.at) == (
        *("observe", "transcript", True, "info"),
        AT,
    )
    assert gate.duration_ms is not None
    assert gate.metadata == {"allow": 1, "transcript": world.transcript.pk, "part": 1, "attempt": 1}


def test_no_record_holds_what_a_session_said(world: World):  # noqa: F811
    world.add(turns((TurnKind.USER, ASKED), (TurnKind.AGENT, "Done.")), answer(FACT))
    world.drain()
    assert "snapshot" not in str(list(TelemetryRecord.objects.values()))


def test_a_stage_that_is_rolled_back_leaves_no_record(world: World, monkeypatch):  # noqa: F811
    part = world.add(turns((TurnKind.USER, ASKED), (TurnKind.AGENT, "Done.")), answer(FACT))
    read = world.read

    def slowly(given):
        part.stages.filter(name="prepare").update(claimed_at=timezone.now() + timedelta(hours=1))
        return read(given)

    monkeypatch.setattr(world, "read", slowly)
    world.drain()
    assert actions() == []


def test_an_attempt_that_fails_is_a_warning_and_the_last_one_an_error(world: World):  # noqa: F811
    world.add(turns((TurnKind.USER, ASKED), (TurnKind.AGENT, "Done.")), None)
    at = AT
    for _ in range(pipeline.ATTEMPTS):
        world.drain(at=at)
        ModelCall.objects.update(asked_at=AT - timedelta(days=1))  # so that the model is not resting
        at += pipeline.LONGEST_PAUSE * 2
    failed = TelemetryRecord.objects.filter(action="memory.observe.failed", success=False).order_by("pk")
    assert list(failed.values_list("level", flat=True)) == ["warning"] * (pipeline.ATTEMPTS - 1) + ["error"]
    assert set(failed.values_list("metadata__error", flat=True)) == {"no answer"}


def test_a_part_without_a_model_waits_without_a_record(world: World, settings):  # noqa: F811
    settings.CLAUDEOPS_MODEL_OBSERVER = ""
    world.add(turns((TurnKind.USER, ASKED), (TurnKind.AGENT, "Done.")), answer(FACT))
    world.drain(at=AT)
    assert actions() == ["memory.prepare.completed"]


def test_a_transcript_that_is_gone_leaves_an_error(world: World):  # noqa: F811
    world.add(PartTurns(missing="the file is gone"), None)
    world.drain()
    assert TelemetryRecord.objects.get(action="memory.prepare.failed").level == "error"


def test_a_sweep_leaves_a_record_when_it_changed_something():
    at = timezone.now()
    sweep(at)
    assert actions() == []
    MemoryFactory(expires_at=at - timedelta(days=1))
    sweep(at, source="schedule")
    swept = TelemetryRecord.objects.get()
    assert (swept.action, swept.source, swept.metadata["expired"]) == ("memory.decay.completed", "schedule", 1)
    sweep(at)
    assert len(actions()) == 1


def test_a_sweep_that_is_taken_back_takes_its_record_with_it():
    MemoryFactory(expires_at=timezone.now() - timedelta(days=1))
    with transaction.atomic():
        sweep(timezone.now())
        transaction.set_rollback(True)
    assert actions() == []


def test_recalls_are_recorded_when_they_are_counted():
    keep_recall()
    assert actions() == []
    memory = MemoryFactory()
    Recalled.objects.create(query="x", hits=[[memory.pk, 1.0]])
    keep_recall()
    keep_recall()
    assert TelemetryRecord.objects.get(action="memory.recall.counted").metadata == {"recalls": 1}


def test_a_record_with_a_key_is_stored_once():
    for _ in range(2):
        record("memory.store.completed", component="observe", source="transcript", key="once", stored=1)
    assert TelemetryRecord.objects.count() == 1
