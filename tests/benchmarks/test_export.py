"""How fast a project's sessions are exported as training data, and how much memory that takes, by their number.

`manage.py export training` in a process of its own. Each session has a prompt of 2 KB, a receipt with twelve memories,
and two memories that it used.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memories.models import Project
from sessions_app.models import How, InjectionReceipt, Session, UsedMemory
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import mb
from tests.benchmarks.rows import Values, put
from tests.support import processes

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
INJECTED, USED = 12, 2
EXPORT = """
import json, time
from django.core.management import call_command
from tests.benchmarks.measure import own, peak_of_process, resident
begin, before = time.perf_counter(), (resident(), own())
with peak_of_process(resident) as everything, peak_of_process(own) as alone:
    call_command("export", "training", file, project="web", verbosity=0)
print(json.dumps([time.perf_counter() - begin, before[0] + everything.bytes, before[1] + alone.bytes]))
"""


def test_exporting_training_data(report: Report, sizes: list[int], tmp_path: Path) -> None:
    rows = []
    for size in sizes:
        Session.objects.all().delete()
        Project.objects.all().delete()
        project = Project.objects.create(slug="web")
        put(Session, size, lambda number, project=project: _session(number, project.pk))
        put(InjectionReceipt, size, _receipt)
        put(UsedMemory, USED * size, _use)
        facts.settle()
        file = tmp_path / "runs.jsonl"
        process = processes.call(f"file = {str(file)!r}\n{EXPORT}")
        out, err = process.communicate()
        assert process.returncode == 0, err
        seconds, everything, alone = json.loads(out.splitlines()[-1])
        count, last = 0, ""
        with file.open() as lines:
            for count, last in enumerate(lines, start=1):  # noqa: B007
                pass
        assert count == size
        assert [len(json.loads(last)[name]) for name in ("injected", "used")] == [INJECTED, USED]
        size_of_file, speed = mb(file.stat().st_size), f"{size / seconds:,.0f}"
        rows.append((f"{size:,}", size_of_file, f"{seconds:.1f}", speed, mb(everything), mb(alone)))
    columns = ("sessions", "MB", "seconds", "sessions/s", "peak RSS MB", "of it own MB")
    note = "Own: without what is mapped from files, of which SQLite's database is one, up to 100 MB."
    report("EXPORT OF TRAINING DATA, with masking (aim: the same memory at any number)", columns, rows, note)


def _session(number: int, project: int) -> Values:
    at = NOW + timedelta(minutes=number // 3)
    return {
        "uuid": uuid.UUID(int=number + 1),
        "project_id": project,
        "status": "failed" if number % 5 == 4 else "completed",
        "prompt": f"## Task\n\nLook after {facts.word(number)}. " + "Read the log before you change a thing. " * 50,
        "summary": f"Checked {facts.word(number)}: all services answer.",
        "num_turns": number % 12 + 3,
        "cost_usd": "0.031400",
        "duration_ms": 40_000 + number % 90_000,
        "queued_at": at,
        "started_at": at,
        "ended_at": at + timedelta(minutes=2),
    }


def _receipt(number: int) -> Values:
    return {
        "session_id": number + 1,
        "sha256": f"{number:064x}",
        "budget": 2000,
        "tokens": 412,
        "included": [
            {
                "id": memory + 1,
                "uuid": str(uuid.UUID(int=memory + 1)),
                "taxonomy": "project",
                "service": None,
                "category": "pattern",
                "confidence": 0.7,
                "observation": facts.observation(memory),
                "reason": "",
            }
            for memory in range(number % 1000, number % 1000 + INJECTED)
        ],
    }


def _use(number: int) -> Values:
    session, place = divmod(number, USED)
    helped = session % 5 != 4
    return {"session_id": session + 1, "memory_id": session % 1000 + place + 1, "how": How.NAMED, "helped": helped}
