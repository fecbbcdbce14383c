"""Which observations are new: each is shown once, in whatever order and however late they arrive."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from django.db import connection

from memories.curate.reflection import choose as module
from memories.curate.reflection.choose import choose, news, note_shown, section_of
from memories.models import Reflection
from tests.memories.curate.reflection.conftest import AT, observed
from tests.support.factories import MemoryFileFactory, ProjectFactory

pytestmark = pytest.mark.django_db


def reflected(file, ids, *, until, state="done"):
    """A reflection that has shown these, or has failed."""
    row = Reflection.objects.create(
        file=file, number=file.reflections.count() + 1, state=state, until=until, done_at=until, observations=ids
    )
    if state == "done":
        note_shown(row)


@pytest.mark.parametrize("seed", range(12))
def test_each_observation_is_shown_once_however_late_it_is_made(seed, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(module, "fitting", lambda seen: min(len(seen), chance.randint(1, 5)))
    file, at = MemoryFileFactory(), AT
    wanted: set[int] = set()
    shown: list[int] = []
    for step in range(60):
        if step < 30:
            for _ in range(chance.randint(0, 5)):
                late = timedelta(seconds=chance.choice([0, 1, 59, 3600, 86_400, 30 * 86_400]))
                wanted.add(observed(f"Host h{len(wanted)} has a disk.", at=at - late).pk)
        choice = choose(None, file, at)
        if choice.memories and (step >= 30 or chance.random() < 0.7):
            ids = [one.pk for one in choice.memories]
            state = "failed" if chance.random() < 0.1 else "done"
            shown += ids if state == "done" else []
            reflected(file, ids, until=at, state=state)
        at += timedelta(seconds=chance.choice([0, 1, 60, 600, 3600]))
    while (choice := choose(None, file, at)).memories:
        ids = [one.pk for one in choice.memories]
        shown += ids
        reflected(file, ids, until=choice.until)
        assert file.reflections.count() < 500
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
        reflected(file, ids, until=choice.until)
    assert sorted(shown) == sorted(wanted)


def test_what_is_new_is_counted_for_each_project_and_for_everything():
    shop, bar = ProjectFactory(slug="shop"), ProjectFactory(slug="bar")
    for project, number in ((None, 1), (shop, 3), (bar, 2)):
        for place in range(number):
            observed(f"Host h{place} has a disk.", project=project)
    observed("held", verdict="hold", project=shop)
    observed("of an agent", agent="web", project=shop)
    reflected(MemoryFileFactory(project=bar), [observed("shown", project=bar).pk], until=AT)
    assert news() == {"": 1, "shop": 3, "bar": 2}


def test_the_newest_come_first():
    old, new = observed("Host a has a disk.", at=AT - timedelta(days=2)), observed("Host b has a disk.")
    assert choose(None, None, AT).memories == (new, old)


def test_the_section_of_an_observation_of_another_taxonomy():
    assert section_of(observed("a", category="people-relationships")) == "people-relationships"
    assert section_of(observed("a", taxonomy="ops", category="timing")) == "operations"
    assert section_of(observed("a", taxonomy="project", category="warning")) == "projects"
    assert section_of(observed("a", category="unknown")) == "operations"


def test_what_is_new_is_found_by_an_index_of_its_own():
    file = MemoryFileFactory()
    assert "memories_unshown" in module._new(None, file, AT).explain() or connection.vendor != "sqlite"
