"""An erased memory leaves no row: no history, no disagreement, no term."""

from __future__ import annotations

import pytest

from memories.lifecycle import disagreements, verbs
from memories.lifecycle.merge import erase_all
from memories.models import Disagreement, DisagreementKind, Memory, MemoryChange, MemoryTerms, to_utc
from memories.recall import keyword_index
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


def test_a_memory_is_erased_with_its_history():
    gone, stays = MemoryFactory(observation="Unwanted words."), MemoryFactory(observation="Other words.")
    for memory in (gone, stays):
        verbs.edit(memory, by="anna", observation=f"{memory.observation} Edited.")
    disagreements.note(gone, stays, DisagreementKind.DUPLICATE, at=to_utc(None), evidence={})
    keyword_index.catch_up()
    assert erase_all(Memory.objects.filter(pk=gone.pk)) == 1
    assert list(Memory.objects.values_list("pk", flat=True)) == [stays.pk]
    assert set(MemoryChange.objects.values_list("memory_uuid", flat=True)) == {stays.uuid}
    assert not Disagreement.objects.exists()
    assert list(MemoryTerms.objects.values_list("pk", flat=True)) == [stays.pk]
