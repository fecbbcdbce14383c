"""Queries end in time, and the connection goes on as before."""

from __future__ import annotations

import time

import pytest
from django.db import OperationalError, connection, transaction

from claudeops.lib.time_limit import time_limit
from tests.support.factories import MemoryFactory

LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000000) SELECT count(*) FROM n"


def ask(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()


def cut_short():
    begun = time.monotonic()
    with pytest.raises(OperationalError), time_limit(0.05):
        ask(LONG)
    assert time.monotonic() - begun < 5
    assert ask("SELECT 1") == (1,)
    assert ask(LONG.replace("300000000", "3000")) == (3000,)


@pytest.mark.django_db(transaction=True)
def test_a_query_ends_in_time():
    cut_short()
    if connection.vendor == "postgresql":
        assert ask("SHOW statement_timeout") == ("0",)


@pytest.mark.django_db
def test_a_transaction_goes_on_without_what_the_block_wrote():
    with transaction.atomic():
        kept = MemoryFactory()
        with pytest.raises(OperationalError), time_limit(0.05):
            MemoryFactory()
            ask(LONG)
        assert list(type(kept).objects.all()) == [kept]
    cut_short()


@pytest.mark.django_db
def test_what_is_quick_enough_is_not_touched():
    with time_limit(5):
        assert ask("SELECT 1") == (1,)
    assert ask("SELECT 1") == (1,)
