"""A row is inserted as the ORM inserts it, on both databases."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.forms import model_to_dict
from django.utils import timezone

from claudeops.lib.insert import insert
from memories.models import Memory, MemoryChange, Recalled
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6"


def test_a_row_has_the_columns_that_the_orm_gives_it():
    memory, project = MemoryFactory(), ProjectFactory()
    at = timezone.now()
    for model, given in (
        (Memory, {"observation": f"It says {TOKEN}", "category": "timing", "project": project, "tags": ["a", "ü"]}),
        (Memory, {"observation": "x", "category": "timing", "expires_at": at, "exposed_to": ["web"], "service": None}),
        (MemoryChange, {"memory": memory, "memory_uuid": memory.uuid, "kind": "edited", "actor": "ada", "at": at}),
        (Recalled, {"query": TOKEN, "filters": {"project": "any"}, "hits": [[1, 0.5]], "surface": "cli", "at": at}),
    ):
        inserted, saved = model(**given), model(**given)
        insert(inserted)
        saved.save(force_insert=True)
        assert inserted.pk
        assert not inserted._state.adding
        rows = [model.objects.get(pk=one.pk) for one in (inserted, saved)]
        named = {"created_at", "updated_at", "uuid"} - given.keys()
        first, second = (
            {one.attname: getattr(row, one.attname) for one in model._meta.concrete_fields if one.name not in named}
            for row in rows
        )
        assert first | {"id": 0} == second | {"id": 0}
        assert model_to_dict(inserted, exclude=named) | {"id": 0} == model_to_dict(saved, exclude=named) | {"id": 0}
    assert TOKEN not in Recalled.objects.latest("pk").query


def test_what_the_database_computes_is_read_from_it_and_what_it_refuses_is_raised():
    memory = MemoryFactory()
    change = MemoryChange(memory=memory, memory_uuid=memory.uuid, kind="edited", actor="ada", at=timezone.now())
    insert(change)
    assert change.by == MemoryChange.objects.get(pk=change.pk).by
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(Memory(observation="x", category="timing", uuid=memory.uuid))
