"""What waits for models, by role: open parts of transcripts and pairs that nobody judged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.llm import status
from memories.models import ModelCall, PartState, Reflection, StageName, StageState
from tests.memories.judging.conftest import a_pair
from tests.support.factories import MemoryFileFactory, PartFactory, StageFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 11, 24, 12, tzinfo=UTC)


def a_part(next_stage: str, now: str = StageState.WAITING, **given):
    """A part whose stages before `next_stage` are done."""
    part = PartFactory(**given)
    names = list(StageName)
    for name in names:
        before = names.index(name) < names.index(StageName(next_stage))
        later = now if name == next_stage else StageState.WAITING
        StageFactory(part=part, name=name, state=StageState.DONE if before else later)
    return part


def test_a_part_waits_for_the_role_of_its_first_stage_that_is_not_done():
    a_part("prepare", created_at=AT)
    a_part("call", created_at=AT - timedelta(hours=1))
    a_part("call", StageState.RUNNING, created_at=AT)
    a_part("classify", created_at=AT)
    a_part("store")
    found = status.backlog()
    assert {role: (one.count, one.since) for role, one in found.items()} == {
        "observer": (3, AT - timedelta(hours=1)),
        "classifier": (1, AT),
    }
    assert (found["observer"].text, found["classifier"].text) == ("3 transcript parts", "1 transcript part")


def test_a_part_that_is_done_or_failed_waits_for_nobody():
    a_part("call", StageState.FAILED, state=PartState.FAILED)
    PartFactory(state=PartState.DONE)
    assert status.backlog() == {}


def test_pairs_wait_for_a_judge_only_when_there_is_one(settings):
    a_pair(), a_pair()
    assert status.backlog() == {}
    settings.CLAUDEOPS_MODEL_JUDGE = "claude:haiku"
    assert status.backlog()["judge"].text == "2 pairs of memories"


def test_of_a_long_backlog_the_oldest_are_counted(monkeypatch):
    monkeypatch.setattr(status, "CAP", 2)
    for hours in (3, 2, 1):
        a_part("call", created_at=AT - timedelta(hours=hours))
    found = status.backlog()["observer"]
    assert (found.text, found.since) == ("2+ transcript parts", AT - timedelta(hours=3))


def test_a_role_is_needed_when_work_waits_for_it_though_nobody_asked_it(settings):
    settings.CLAUDEOPS_CLAUDE_BIN = "no-such-cli"
    assert status.troubles() == []
    a_part("call")
    (state,) = status.troubles()
    assert (state.chosen.role.name, state.word, state.waiting.count) == ("observer", "not set up", 1)


def test_the_queries_grow_neither_with_the_backlog_nor_with_the_calls(settings):
    settings.CLAUDEOPS_CLAUDE_BIN = "no-such-cli"

    def queries():
        with CaptureQueriesContext(connection) as captured:
            status.of_needed()
        return len(captured)

    for _ in range(10):
        a_part("call"), a_pair()
        ModelCall.objects.create(role="observer", backend="x", model="y", prompt_hash="a", asked_at=timezone.now())
    few = queries()
    for _ in range(10):
        a_part("call"), a_pair()
    assert queries() == few == 4


def test_a_reflection_waits_for_the_reflector_until_it_is_answered():
    row = Reflection.objects.create(file=MemoryFileFactory(), number=1, until=AT, created_at=AT)
    found = status.backlog()["reflector"]
    assert (found.text, found.since) == ("1 reflection", AT)
    Reflection.objects.filter(pk=row.pk).update(state="answered")
    assert "reflector" not in status.backlog()
