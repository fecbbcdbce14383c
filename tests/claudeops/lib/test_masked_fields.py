"""Whatever writes a masked column, no credential arrives in the database."""

from __future__ import annotations

import logging

import pytest
from django.db.models import CharField, TextField, Value

from claudeops.lib.masked import MaskedCharField, MaskSecrets
from memories.models import Memory, MemoryChange
from sessions_app.models import Event, ServiceCheck
from tests.support.factories import EventFactory, MemoryFactory, SessionFactory

TOKEN = "gh" + "p_" + "a1B2c3D4e" * 4
MASK = "[secret: GitHub token]"


@pytest.mark.django_db
def test_every_way_of_writing_masks():
    made = EventFactory(message=f"save {TOKEN}")
    assert Event.objects.get().message == f"save {MASK}"
    Event.objects.update(message=f"update {TOKEN}")
    assert Event.objects.get().message == f"update {MASK}"
    made.message = f"bulk_update {TOKEN}"
    Event.objects.bulk_update([made], ["message"])
    assert Event.objects.get().message == f"bulk_update {MASK}"
    Event.objects.bulk_create([Event(message=f"bulk_create {TOKEN}", fingerprint="f")])
    assert Event.objects.filter(message=f"bulk_create {MASK}").exists()
    Event.objects.filter(pk=made.pk).update(
        message=Value(f"an expression {TOKEN}", output_field=Event._meta.get_field("message"))
    )
    assert Event.objects.get(pk=made.pk).message == f"an expression {MASK}"


@pytest.mark.django_db
def test_json_is_masked_within_and_a_short_column_is_cut():
    memory = MemoryFactory(tags=[TOKEN])
    memory.refresh_from_db()
    assert memory.tags == [MASK]
    MemoryChange.objects.create(
        memory=memory, memory_uuid=memory.uuid, kind="edited", at=memory.created_at, after={"a": [TOKEN]}
    )
    assert MemoryChange.objects.get().after == {"a": [MASK]}
    session = SessionFactory()
    ServiceCheck.objects.create(session=session, service="s", status=f"{'x' * 20} {TOKEN}"[:64], healthy=False)
    assert ServiceCheck.objects.get().status == f"{'x' * 20} {MASK}"


@pytest.mark.django_db
def test_a_query_is_not_masked():
    MemoryFactory(observation="Nothing secret.")
    assert not Memory.objects.filter(observation__contains=TOKEN).exists()


def test_a_masked_text_is_cut_to_its_column():
    field = MaskedCharField(max_length=10)
    assert field.masked(TOKEN) == MASK[:10]


def test_migrations_see_django_s_own_fields():
    assert Event._meta.get_field("message").deconstruct()[1] == TextField(name="x").deconstruct()[1]
    assert MemoryChange._meta.get_field("reason").deconstruct()[1] == CharField(name="x").deconstruct()[1]


def test_logs_are_masked_with_their_exceptions(caplog):
    def logged(*arguments, **named):
        record = logging.LogRecord("memories", logging.INFO, __file__, 1, *arguments, **named)
        assert MaskSecrets().filter(record)
        return logging.Formatter().format(record)

    assert logged("%s said %s", ("it", TOKEN), None) == f"it said {MASK}"
    try:
        raise ValueError(TOKEN)
    except ValueError as error:
        told = logged("failed", (), (ValueError, error, error.__traceback__))
    assert TOKEN not in told and f"ValueError: {MASK}" in told


def test_the_configured_handlers_have_the_filter(settings):
    handlers = settings.LOGGING["handlers"]
    assert all("secrets" in handler["filters"] for handler in handlers.values())
