"""The data steps of migrations, called on rows of the tables as they are now: migrating down and up takes seconds."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from sessions_app.models import Event
from tests.support.factories import EventFactory

pytestmark = pytest.mark.django_db


def test_the_upgrade_acknowledges_what_is_open_and_older_than_a_day_and_nothing_else():
    old, new = timezone.now() - timedelta(hours=25), timezone.now() - timedelta(hours=23)
    known = {EventFactory(level=level, created_at=old).pk for level in ("warning", "critical")}
    EventFactory(level="info", created_at=old)
    EventFactory(level="critical", created_at=new)
    import_module("sessions_app.migrations.0021_open_events").acknowledge_old(apps, None)
    acknowledged = Event.objects.filter(acknowledged_at__isnull=False)
    assert {event.pk for event in acknowledged} == known
    assert set(acknowledged.values_list("acknowledged_by", flat=True)) == {"upgrade"}
