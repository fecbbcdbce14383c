"""The history in the admin: read, never written."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.history.timeline import entry_of
from memories.models import MemoryChange
from tests.support.factories import MemoryFactory, SessionFactory

LIST = "/admin/memories/memorychange/"


def change(**kwargs) -> MemoryChange:
    memory = kwargs.pop("memory", None) or MemoryFactory()
    kwargs = {"kind": "edited"} | kwargs
    return MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, **kwargs)


@pytest.mark.django_db
def test_a_confirmation_leaves_out_the_times_that_move_with_it():
    row = change(
        kind="reinforced",
        before={"confidence": 0.7, "updated_at": "2026-11-01T00:00:00+00:00"},
        after={"confidence": 0.8, "updated_at": "2026-11-02T00:00:00+00:00"},
        evidence={"text": "Said again", "score": 0.9},
    )
    entry = entry_of(row)
    assert [(move.name, move.before, move.after) for move in entry.moved] == [("confidence", 0.7, 0.8)]
    assert entry.said == "Said again"
    assert [(ground.about, ground.text) for ground in entry.evidence] == [
        ("similarity", "90 % of the content of both texts is shared")
    ]


@pytest.mark.django_db
def test_a_confirmation_at_full_confidence_still_says_what_moved():
    row = change(kind="reinforced", before={"updated_at": "2026-11-01T00:00:00+00:00"}, after={"updated_at": "x"})
    assert [move.name for move in entry_of(row).moved] == ["confirmed"]


@pytest.mark.django_db
def test_a_new_memory_says_what_it_was_and_not_every_column():
    row = change(kind="created", after={"observation": "Slow", "confidence": 0.7, "uuid": "x", "tier": 1, "tags": []})
    assert [move.name for move in entry_of(row).moved] == ["observation", "confidence"]


def test_the_list_shows_from_to_and_survives_the_deletion_of_its_memory(client, operator):
    client.force_login(operator)
    row = change(before={"confidence": 0.4}, after={"confidence": 0.6}, actor="operator")
    html = client.get(LIST).content.decode()
    assert "confidence: 0.4 → 0.6" in html
    assert f'<th class="field-what"><a href="/memories/{row.memory_id}/changes/{row.pk}">' in html
    row.memory.delete()
    html = client.get(LIST).content.decode()
    assert f'title="{row.memory_uuid}">deleted' in html
    assert f'<th class="field-what"><a href="{LIST}{row.pk}/change/">' in html
    assert str(row.memory_uuid) in client.get(f"{LIST}{row.pk}/change/").content.decode()


def test_nobody_adds_changes_or_deletes_history(client, operator):
    client.force_login(operator)
    row = change()
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{row.pk}/change/", {"kind": "deleted"}).status_code == 403
    assert client.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    row.refresh_from_db()
    assert row.kind == "edited"


def test_the_list_costs_the_same_with_twice_the_rows(client, operator):
    client.force_login(operator)

    def queries(rows: int) -> int:
        for _ in range(rows):
            change(session=SessionFactory())
        with CaptureQueriesContext(connection) as captured:
            assert client.get(LIST).status_code == 200
        return len(captured)

    queries(1)
    assert queries(9) == queries(10)
