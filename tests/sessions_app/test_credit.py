"""Used memories: found in what a session says, credited by its end."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from sessions_app.models import How, UsedMemory
from tests.factories import SessionFactory

pytestmark = pytest.mark.django_db


def test_a_session_uses_a_memory_once() -> None:
    session = SessionFactory()
    UsedMemory.objects.create(session=session, memory_id=42, how=How.NAMED)
    with pytest.raises(IntegrityError), transaction.atomic():
        UsedMemory.objects.create(session=session, memory_id=42, how=How.QUOTED)
    assert UsedMemory.objects.get().helped is None


def test_what_was_left_uncredited_is_found_in_its_index() -> None:
    plan = UsedMemory.objects.filter(credited_at=None).values("session").order_by("session").explain()
    if connection.vendor == "sqlite":
        assert "used_memories_uncredited" in plan
