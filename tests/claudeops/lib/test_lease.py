"""A lease: one worker has a row, whoever else asks meanwhile, until its time is over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from claudeops.lib.lease import Lease
from memories.models import TelemetryCursor
from sessions_app.models import TranscriptFolder

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


@pytest.fixture
def cursor():
    return TelemetryCursor.objects.create(name="records")


def test_a_row_is_claimed_once_until_its_time_is_over(cursor):
    lease, at = Lease(MINUTE), timezone.now()
    rows = TelemetryCursor.objects.filter(pk=cursor.pk)
    assert lease.take(rows, at, sent=7)
    assert rows.get().sent == 7
    assert rows.get().claimed_until == at + MINUTE
    assert not lease.take(rows, at + MINUTE / 2)
    assert lease.take(rows, at + MINUTE)


def test_a_claim_that_another_worker_took_between_look_and_update_is_not_taken(cursor):
    lease, at = Lease(MINUTE), timezone.now()
    found = TelemetryCursor.objects.filter(lease.free(at)).first()
    assert found is not None
    assert lease.take(TelemetryCursor.objects.filter(pk=found.pk), at)  # the other worker
    assert not lease.take(TelemetryCursor.objects.filter(pk=found.pk), at)


def test_only_who_has_it_renews_it(cursor):
    lease, at = Lease(MINUTE), timezone.now()
    assert lease.take(TelemetryCursor.objects.filter(pk=cursor.pk), at)
    mine = TelemetryCursor.objects.filter(pk=cursor.pk, claimed_until=at + MINUTE)
    assert lease.renew(mine, at + MINUTE)
    assert not lease.renew(mine, at + MINUTE)  # it has another end now


def test_a_column_may_hold_when_a_claim_began():
    lease, at = Lease(MINUTE, "swept_at", holds_start=True), timezone.now()
    row = TranscriptFolder.objects.create(host="nuc-1", path="/x", installation="laptop", since=at)
    rows = TranscriptFolder.objects.filter(pk=row.pk)
    assert lease.take(rows, at)
    assert rows.get().swept_at == at
    assert not lease.take(rows, at + MINUTE / 2)
    assert lease.take(rows, at + MINUTE)
