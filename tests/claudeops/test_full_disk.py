"""A real disk that is full while sessions run: what every surface says, how they end, and that nothing is lost."""

from __future__ import annotations

import os
import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from claudeops.lib import outage
from memories import access
from memories.models import Memory, Scope
from sessions_app import queue, reaper
from sessions_app.models import Session, Status
from tests.claudeops.processes import slow_cli, started, until
from tests.support.factories import AgentFactory
from tests.support.outages import connected, copy_of_database, fill, small_disk
from tests.support.processes import manage

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "postgresql", reason="SQLite is on the same disk"),
]

FULL = re.compile(r"The disk of the data folder is full: [\d.]+ (bytes|KB|MB) free, 4\.0 MB needed\.")


@pytest.fixture
def house(tmp_path, settings):
    """A data folder with its database on a disk of its own, and somebody who is signed in."""
    with small_disk(tmp_path / "data", 40) as data:
        settings.CLAUDEOPS_DATA_DIR = data
        settings.CLAUDEOPS_WORK_DIR = tmp_path / "work"
        settings.CLAUDEOPS_CLAUDE_BIN = str(slow_cli(tmp_path))
        settings.CLAUDEOPS_CLAUDE_HOME = str(tmp_path)
        with connected(copy_of_database(data / "claudeops.sqlite3")):
            client = Client(raise_request_exception=False)
            client.force_login(get_user_model().objects.create_superuser("operator"))
            client.token = access.add_token("disk", scopes=list(Scope), by="operator")[1]
            yield client


def remember(house: Client, number: int):
    """Ask the API to store a fact that takes some pages."""
    fact = {"category": "timing", "observation": f"Service number {number} of the house takes {number} seconds " * 9}
    headers = {"authorization": f"Bearer {house.token}"}
    return house.post("/api/memories", fact, content_type="application/json", headers=headers)


def test_a_full_disk_is_said_everywhere_and_ends_the_sessions_that_run(house, settings, tmp_path, caplog):
    data, log = settings.CLAUDEOPS_DATA_DIR, tmp_path / "worker.log"
    for slug in ("one", "two", "three"):
        queue.request_session(agent=AgentFactory(slug=slug), trigger="manual", by="anna", tier=1)
    first, second, third = Session.objects.order_by("pk")
    with started("runworker", log=log, CLAUDEOPS_SESSION_WORKERS="2") as worker:
        until(lambda: Session.objects.running().exclude(ingest_offset=0).count() == 2, worker.output())
        stored = [answer.json()["memory"]["id"] for answer in [remember(house, 1)]]
        pids = [reaper.process_of(session) for session in Session.objects.running()]
        filler = fill(data)

        for number in range(2, 2000):  # until SQLite's log is full, too
            answer = remember(house, number)
            if answer.status_code != 201:
                break
            stored.append(answer.json()["memory"]["id"])
        assert answer.status_code == 507, answer.content
        assert (answer.json()["error"]["code"], answer.json()["fix"]) == ("disk_full", outage.MAKE_ROOM)
        assert FULL.fullmatch(answer.json()["error"]["message"])
        page = house.post("/preferences", {"theme": "dark", "time_zone": "UTC"})
        assert page.status_code == 507
        assert FULL.search(page.content.decode())
        overview = house.get("/")
        assert overview.status_code == 200
        assert FULL.search(overview.content.decode())
        ready = house.get("/readyz")
        assert ready.status_code == 503
        assert FULL.fullmatch(ready.json()["reason"])
        commands = [
            manage(*words)
            for words in (("doctor",), ("memory", "add", "--category", "timing", "x takes a minute" * 99))
        ]
        for command in commands:
            out, err = command.communicate()
            assert command.returncode == 1, out + err
            assert FULL.search(out + err)
            assert "Traceback" not in out + err
        assert "Traceback" not in caplog.text
        until(lambda: not any(process.poll()[0] for process in pids), "the CLIs of the sessions end")

        os.truncate(filler, filler.stat().st_size - 1024**2)  # room for rows, less than the reserve
        until(lambda: not Session.objects.running().exists(), "the sessions are closed")
        for session in (first, second):
            session.refresh_from_db()
            assert session.status == Status.FAILED
            assert FULL.search(session.status_reason), session.status_reason
        until(lambda: Session.objects.get(pk=third.pk).hold_reason, "the third session has to wait")
        third.refresh_from_db()
        assert (third.status, bool(FULL.search(third.hold_reason))) == (Status.QUEUED, True)
        assert set(stored) == set(Memory.objects.values_list("pk", flat=True))

        filler.unlink()
        until(lambda: Session.objects.running().filter(pk=third.pk).exists(), "the third session starts")
        assert house.get("/readyz").json() == {"ok": True}
        queue.request_stop(third.pk, by="anna")
        until(lambda: not Session.objects.running().exists(), "the third session ends")
    assert "Traceback" not in worker.output()
