"""Errors that the databases and the system really raise, and the outage that each names; other errors name none."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest
from django.db import DatabaseError, Error, IntegrityError, connection, transaction

from claudeops.lib import outage
from claudeops.lib.masked import MaskSecrets
from sessions_app.models import Session
from tests.support.outages import connected, fill_database

pytestmark = pytest.mark.django_db(transaction=True)
postgresql = pytest.mark.skipif(os.environ.get("TEST_DATABASE") != "postgresql", reason="PostgreSQL's own")


def named(error: BaseException) -> tuple[int, str]:
    found = outage.named_in(error)
    return (found.status, found.code) if found else (0, "")


def test_a_full_disk_of_the_system_and_of_the_database():
    with pytest.raises(DatabaseError) as raised:
        fill_database()
    for error in (raised.value, OSError(errno.ENOSPC, "No space left"), OSError(errno.EDQUOT, "Quota", "/mnt/x")):
        assert named(error) == (507, "disk_full")
        assert outage.named_in(error).message.startswith("A disk is full: ")  # the data folder has room
    try:
        raise ValueError("half a file") from raised.value
    except ValueError as error:
        assert named(error) == (507, "disk_full")


def test_the_log_has_its_sentence_in_the_place_of_a_traceback():
    texts = []
    for act in (fill_database, lambda: 1 / 0):
        with pytest.raises(Exception) as raised:
            act()
        record = logging.LogRecord("x", logging.ERROR, "", 0, "it failed", None, (raised.type, raised.value, raised.tb))
        MaskSecrets().filter(record)
        texts.append(str(record.exc_text))
    assert texts[0].startswith("A disk is full: ") and "Traceback" not in texts[0]
    assert "Traceback" in texts[1]


def test_other_errors_are_no_outage():
    session = Session.objects.create()
    with pytest.raises(IntegrityError) as raised, transaction.atomic():
        Session.objects.create(pk=session.pk)
    for error in (raised.value, OSError(errno.ENOENT, "No such file"), ValueError("x"), None):
        assert outage.named_in(error) is None
        assert outage.behind(error) is None


def test_the_reserve_is_a_part_of_a_small_disk(settings, tmp_path, monkeypatch):
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "not yet made"
    assert outage.full_disk() == ""
    monkeypatch.setattr(outage, "RESERVE", 2**60)  # a tenth of the disk counts
    total, _, free = (getattr(os.statvfs(tmp_path), name) for name in ("f_blocks", "f_bfree", "f_bavail"))
    assert bool(outage.full_disk()) == (free < total // 10)
    assert outage.full_disk(0.0) == ""


@postgresql
def test_a_locked_and_an_unreachable_postgresql():
    for code, expected in (("55P03", "database_locked"), ("57P01", "database_unreachable"), ("57014", "")):
        with pytest.raises(Error) as raised, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"DO $$ BEGIN RAISE 'x' USING ERRCODE = '{code}'; END $$")
        assert named(raised.value)[1] == expected, code
    with connected(Path("no_such_database")), pytest.raises(Error) as raised:
        Session.objects.count()
    assert named(raised.value) == (503, "database_unreachable")
