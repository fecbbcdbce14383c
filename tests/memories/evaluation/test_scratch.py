"""The scratch database: the operator's is untouched, and nothing is left behind."""

from __future__ import annotations

import os
import signal

import pytest
from django.conf import settings
from django.db import connection

from memories.models import Memory
from tests.benchmarks.evaluation import scratch
from tests.benchmarks.evaluation.scratch import scratch_database
from tests.support.factories import MemoryFactory
from tests.support.processes import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def exists(name):
    if connection.vendor != "postgresql":
        return os.path.exists(name)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
        return cursor.fetchone() is not None


def test_an_interrupted_evaluation_leaves_no_database_behind(request):
    if connection.vendor == "sqlite":  # migrating takes 10 seconds: the run on PostgreSQL tests it
        request.getfixturevalue("scratch_is_a_copy")
    mine = MemoryFactory()
    name, folder = connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR
    with pytest.raises(SystemExit) as left, scratch_database() as where:
        made = connection.settings_dict["NAME"]
        assert made != name
        assert not Memory.objects.exists()
        os.kill(os.getpid(), signal.SIGTERM)  # Ctrl-C raises by itself
        wait_for(lambda: False)
    assert left.value.code == 128 + signal.SIGTERM
    assert not where.exists()
    assert (connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR) == (name, folder)
    assert not exists(made)
    assert list(Memory.objects.all()) == [mine]


def test_the_operators_database_stays_when_a_scratch_database_cannot_be_made(monkeypatch):
    mine, name = MemoryFactory(), connection.settings_dict["NAME"]

    def fail(*arguments, **named):
        raise OSError("no room")

    monkeypatch.setattr(connection.creation, "_create_test_db", fail)
    with pytest.raises(OSError, match="no room"), scratch.scratch_database():
        pass
    assert connection.settings_dict["NAME"] == name
    assert list(Memory.objects.all()) == [mine]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a killed process leaves a file in the temporary folder")
@pytest.mark.usefixtures("scratch_is_a_copy")
def test_a_database_that_a_killed_evaluation_left_is_replaced():
    name = connection.settings_dict["NAME"]
    connection.close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'CREATE DATABASE "{name}_bench"')
    with scratch_database():
        assert not Memory.objects.exists()
    assert not exists(f"{name}_bench")
