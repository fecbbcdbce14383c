"""How long it takes to sync the memory files of a project: unchanged, changed by people, changed by memories."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db.models import F, Value
from django.db.models.functions import Concat

from memories.files import storage
from memories.files.sync import sync_project
from memories.models import Change, Memory, MemoryChange, Project, Source
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms

pytestmark = pytest.mark.django_db(transaction=True)
FILES, ITEMS = 200, 15


def test_syncing_agent_files(report: Report, smoke: bool, tmp_path: Path) -> None:
    files = 5 if smoke else FILES
    project = Project.objects.create(slug="shop", path=str(tmp_path))
    categories = ("mistake", "pattern", "guideline", "learning", "performance")
    Memory.objects.bulk_create(
        Memory(
            taxonomy="agent",
            project=project,
            agent=f"agent_{number}",
            category=categories[item % len(categories)],
            observation=f"Step {item} of part {number} needs {item + 3} seconds",
            source=Source.RUN,
        )
        for number in range(files)
        for item in range(ITEMS)
    )
    rows = []

    def measure(name: str, runs: int = 1) -> None:
        series, changed = Series(), 0
        for _ in range(runs):
            done = series.time(sync_project, project)
            assert len(done) == files
            assert not any(one.problem for one in done)
            changed = sum(one.changed for one in done)
        rows.append((name, f"{files}", f"{changed}", ms(series.median), ms(series.median / files)))

    measure("new")
    measure("unchanged", 3)
    for number in range(files):
        path = storage.location(project, f"agent_{number}")
        path.write_text(path.read_text().replace("part", "piece"))
    measure("each saved by a person, 15 lines changed")
    measure("unchanged", 3)
    Memory.objects.update(observation=Concat(F("observation"), Value(" at most")))
    MemoryChange.objects.bulk_create(MemoryChange(memory=row, kind=Change.EDITED) for row in Memory.objects.only("pk"))
    measure("each with 15 changed memories")
    measure("unchanged", 3)
    report(
        "SYNCING AGENT FILES of 15 lines (aim: 1 s for 200 unchanged)",
        ("files", "number", "changed", "ms", "ms a file"),
        rows,
    )
