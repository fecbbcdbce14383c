"""Which observations are new: each is shown once, in whatever order and however late they arrive."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from django.db import connection

from memories.curate.reflection import choose as module
from memories.curate.reflection.choose import OVERLAP, choose, section_of
from memories.models import Reflection
from tests.memories.curate.reflection.conftest import AT, observed
from tests.support.factories import MemoryFileFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("seed", range(12))
def test_each_observation_is_shown_once_however_late_it_is_committed(seed, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(module, "fitting", lambda seen: min(len(seen), chance.randint(1, 5)))
    file, at, number = MemoryFileFactory(), AT, 0
    wanted: set[int] = set()
    shown: list[int] = []
    for step in range(60):
        if step < 30:
            for _ in range(chance.randint(0, 5)):
                late = timedelta(seconds=chance.choice([0, 0, 1, 59, OVERLAP.total_seconds() - 1]))
                wanted.add(observed(f"Host h{len(wanted)} has a disk.", at=at - late).pk)
        choice = choose(None, file, at)
        if choice.memories and (step >= 30 or chance.random() < 0.7):
            number += 1
            ids = [one.pk for one in choice.memories]
            shown += ids
            state = "failed" if chance.random() < 0.1 else "done"
            if state == "failed":
                shown = shown[: -len(ids)]
            Reflection.objects.create(
                file=file, number=number, state=state, since=choice.since, until=at, done_at=at, observations=ids
            )
        at += timedelta(seconds=chance.choice([0, 1, 60, 600, 3600]))
    while (choice := choose(None, file, at)).memories:
        number += 1
        ids = [one.pk for one in choice.memories]
        shown += ids
        Reflection.objects.create(
            file=file, number=number, state="done", since=choice.since, until=at, done_at=at, observations=ids
        )
        assert number < 500
    assert len(shown) == len(set(shown))
    assert set(shown) == wanted


def test_observations_of_one_moment_are_not_lost_where_a_message_ends(monkeypatch):
    monkeypatch.setattr(module, "fitting", lambda seen: min(len(seen), 3))
    file = MemoryFileFactory()
    wanted = {observed(f"Host h{number} has a disk.").pk for number in range(10)}
    shown: list[int] = []
    for number in range(1, 6):
        choice = choose(None, file, AT + timedelta(hours=number))
        ids = [one.pk for one in choice.memories]
        shown += ids
        Reflection.objects.create(
            file=file, number=number, state="done", since=choice.since, until=choice.until, observations=ids
        )
    assert sorted(shown) == sorted(wanted)


def test_the_newest_come_first():
    old, new = observed("Host a has a disk.", at=AT - timedelta(days=2)), observed("Host b has a disk.")
    assert choose(None, None, AT).memories == (new, old)


def test_the_section_of_an_observation_of_another_taxonomy():
    assert section_of(observed("a", category="people-relationships")) == "people-relationships"
    assert section_of(observed("a", taxonomy="ops", category="timing")) == "operations"
    assert section_of(observed("a", taxonomy="project", category="warning")) == "projects"
    assert section_of(observed("a", category="unknown")) == "operations"


def test_what_is_new_since_a_whole_reflection_is_found_by_its_time():
    file = MemoryFileFactory()
    Reflection.objects.create(file=file, number=1, state="done", until=AT, observations=[1, 2])
    assert "updated_at>" in module._new(None, file, AT).explain() or connection.vendor != "sqlite"
