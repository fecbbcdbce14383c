"""Maintenance that is killed at any place and run again equals one run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memories.curate.maintenance import maintain_due
from memories.curate.maintenance.run import LEASE
from memories.models import Disagreement, MaintenanceRun, Memory, MemoryChange, TelemetryRecord, states_before
from tests.memories.curate.maintenance.house import AT, dump, fill
from tests.support.processes import killed
from tests.support.thorough import one_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

WORK = f"""
from datetime import datetime
from memories.curate.maintenance import maintain_due
maintain_due(at=datetime.fromisoformat({AT.isoformat()!r}))
"""
RUN, STEPS = "memories.curate.maintenance.run", "memories.curate.maintenance.steps"

PLACES = [
    ("return", RUN, "_begin", 1),
    ("call", RUN, "_do", 1),
    ("return", RUN, "_beat", 1),
    ("call", "memories.lifecycle.sweep", "_sweep", 1),
    ("return", "memories.lifecycle.bulk_write", "write_all", 1),
    ("return", "memories.lifecycle.sweep", "_sweep", 1),
    ("return", "memories.lifecycle.sweep", "sweep", 1),
    ("call", STEPS, "counted", 1),
    ("return", RUN, "_do", 1),
    ("return", "memories.lifecycle.sweep", "_sweep", 2),
    ("return", "memories.lifecycle.sweep", "sweep", 2),
    ("return", "memories.curate.maintenance.duplicates", "look", 1),
    ("call", "memories.lifecycle.merge", "merge", 1),
    ("return", "memories.lifecycle.merge", "merge", 1),
    ("return", "memories.lifecycle.merge", "merge", 2),
    ("return", STEPS, "_write_duplicates", 1),
    ("call", STEPS, "counted", 3),
    ("return", "memories.curate.maintenance.ageing", "taken_back", 1),
    ("return", "memories.curate.maintenance.ageing", "taken_back", 2),
    ("return", RUN, "_do", 5),
    ("return", STEPS, "_keep_count", 1),
    ("return", STEPS, "distribution", 1),
    ("call", RUN, "_finish", 1),
    ("return", "memories.telemetry", "record", 3),
]


def figures() -> list[Any]:
    run = MaintenanceRun.objects.get()
    steps = run.steps.order_by("position").values_list("name", "position", "state", "cursor", "counts", "undone_at")
    return [run.state, run.night, run.at, run.by, run.claimed_by, *steps]


def undo_past_the_history() -> None:
    """Set everything back to before the run, so that it can be done again with the same rows."""
    run = MaintenanceRun.objects.get()
    for pk, columns in states_before(MemoryChange.objects.filter(at=run.at).order_by("-pk")).items():
        Memory.objects.filter(pk=pk).update(**columns)
    MemoryChange.objects.filter(at=run.at).delete()
    TelemetryRecord.objects.all().delete()
    Disagreement.objects.all().delete()
    run.steps.all().delete()
    run.delete()


@pytest.mark.parametrize(("event", "module", "function", "nth"), one_of(PLACES))
def test_it_is_gone_on_with_and_equals_one_run(event, module, function, nth):
    fill(2)
    before = dump()
    killed(WORK, event, module, function, nth=nth)
    assert not MaintenanceRun.objects.filter(state="done").exists()
    maintain_due(at=AT + LEASE.lasts + timedelta(seconds=1))
    interrupted = (figures(), dump())
    undo_past_the_history()
    assert dump() == before
    maintain_due(at=AT)
    assert figures() == interrupted[0]
    assert dump() == interrupted[1]
