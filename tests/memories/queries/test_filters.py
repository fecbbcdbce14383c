"""Narrowing memories down: `memories/queries/filters.py`."""

from __future__ import annotations

import pytest

from memories.models import Memory, Verdict
from memories.queries.filters import MemoryFilterSet
from tests.support.factories import MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def session():
    return SessionFactory()


@pytest.fixture
def wanted(session):
    """The one memory that every filter below names; the others differ from it in that respect."""
    return MemoryFactory(
        service="caddy",
        category="behavior",
        observation="Reloads take 100% of one core",
        confidence=0.5,
        active=False,
        verdict=Verdict.HOLD,
        source="import",
        persistent=True,
        session=session,
        tier=3,
        agent="watcher",
        project=ProjectFactory(slug="homelab"),
    )


@pytest.mark.parametrize(
    "query",
    [
        {"service": "Caddy"},
        {"category": "behavior"},
        {"project": "homelab"},
        {"agent": "watcher"},
        {"active": "false"},
        {"verdict": "hold"},
        {"source": "import"},
        {"trust": "imported"},
        {"persistent": "true"},
        {"confidence_min": "0.5", "confidence_max": "0.5"},
        {"text": "ONE reloads"},
        {"text": "100%"},
        {"tier": "3"},
        {"active": "false", "service": "caddy", "text": "core", "tier": "3"},
    ],
    ids=str,
)
def test_each_filter_finds_the_one(wanted, query):
    MemoryFactory(), MemoryFactory(service=None)
    filters = MemoryFilterSet(query, queryset=Memory.objects.all())
    assert filters.is_valid(), filters.errors
    assert list(filters.qs) == [wanted]


def test_by_session(wanted, session):
    MemoryFactory(session=SessionFactory())
    assert list(MemoryFilterSet({"session": str(session.pk)}, queryset=Memory.objects.all()).qs) == [wanted]


def test_general_is_no_service_and_global_no_project(wanted):
    general = MemoryFactory(service=None)
    assert list(MemoryFilterSet({"service": "general"}, queryset=Memory.objects.all()).qs) == [general]
    assert list(MemoryFilterSet({"project": "global"}, queryset=Memory.objects.all()).qs) == [general]


def test_without_a_filter_all_are_there(wanted):
    MemoryFactory()
    assert MemoryFilterSet({"service": "", "unknown": "x"}, queryset=Memory.objects.all()).qs.count() == 2


@pytest.mark.parametrize(
    "query",
    [
        {"category": "misc"},
        {"taxonomy": "x"},
        {"verdict": "x"},
        {"source": "x"},
        {"confidence_min": "nan"},
        {"confidence_max": "2"},
        {"session": "x"},
        {"session": "99999999999999999999"},
        {"tier": "9"},
        {"text": "a\x00b"},
        {"text": "x" * 201},
    ],
    ids=str,
)
def test_a_wrong_value_is_an_error_not_an_empty_list(query):
    filters = MemoryFilterSet(query, queryset=Memory.objects.all())
    assert not filters.is_valid()
    assert list(filters.errors) == list(query)


def test_memories_by_what_their_sessions_had_read(db):
    made = {name: MemoryFactory(exposure=name) for name in ("nothing", "house", "outside")}
    for name, memory in made.items():
        assert list(MemoryFilterSet({"exposure": name}, queryset=Memory.objects.all()).qs) == [memory]
    assert not MemoryFilterSet({"exposure": "inside"}, queryset=Memory.objects.all()).is_valid()
