"""A database that another process keeps locked, or that is away: what every surface says of it, without a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection, transaction
from django.test import Client

from claudeops.features.purge import files as purged
from claudeops.features.purge.needles import Needles
from claudeops.features.secret_scan.files import text_files
from claudeops.lib import outage
from memories import access
from memories.models import Memory, Scope
from sessions_app import queue
from sessions_app.models import Session, Status
from tests.claudeops.processes import slow_cli, started, until
from tests.support import processes
from tests.support.factories import AgentFactory
from tests.support.outages import connected, copy_of_database, locked

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "postgresql", reason="SQLite has one writer"),
]

SENTENCE = "The database is locked by another process."


@pytest.fixture
def house(tmp_path, settings):
    """A database of its own, whose busy timeout is short, and somebody who is signed in to it."""
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    with connected(copy_of_database(tmp_path / "house.sqlite3")):
        options = connection.settings_dict["OPTIONS"]
        connection.settings_dict["OPTIONS"] = {**options, "timeout": 0.2}
        client = Client(raise_request_exception=False)
        client.force_login(get_user_model().objects.create_superuser("operator", password="a long password"))
        AgentFactory(slug="watch")
        client.token = access.add_token("lock", scopes=list(Scope), by="operator")[1]
        yield client
        connection.settings_dict["OPTIONS"] = options


def test_pages_and_routes_say_it_and_when_to_try_again(house, caplog):
    bearer = {"authorization": f"Bearer {house.token}"}
    fact = {"category": "timing", "observation": "jellyfin takes a minute to start after a reboot"}
    with locked(Path(connection.settings_dict["NAME"])):
        for page in ("/", "/sessions", "/memories"):
            assert house.get(page).status_code == 200, page  # a reader waits for nobody
        for path, fields in (
            ("/preferences", {"theme": "dark", "time_zone": "UTC"}),
            ("/login", {"username": "x", "password": "y"}),
        ):
            client = house if path == "/preferences" else Client(raise_request_exception=False)
            answer = client.post(path, fields)
            assert (answer.status_code, answer["Retry-After"]) == (503, "5"), (path, answer.content)
            assert SENTENCE in answer.content.decode()
        for path in ("/api/memories", "/api/sessions"):
            body = fact if path == "/api/memories" else {"agent": "watch", "prompt": "Look"}
            answer = house.post(path, body, content_type="application/json", headers=bearer)
            assert (answer.status_code, answer["Retry-After"]) == (503, "5"), (path, answer.content)
            assert answer.json() == {
                "error": {"code": "database_locked", "message": SENTENCE},
                "fix": outage.TRY_AGAIN,
            }
    assert "Traceback" not in caplog.text
    assert house.post("/api/memories", fact, content_type="application/json", headers=bearer).status_code == 201


def test_a_command_says_it_and_exits_with_1(house):
    name = connection.settings_dict["NAME"]
    add = ("memory", "add", "--category", "timing", "jellyfin takes a minute to start")
    short = {"DATABASE_URL": f"sqlite:///{name}?timeout=1"}
    with locked(Path(name)):
        ended = [processes.manage(*arguments, more=short) for arguments in (add, (*add, "--json"))]
        (out, err), (document, _) = [process.communicate() for process in ended]
    assert [process.returncode for process in ended] == [1, 1]
    assert (out, err.splitlines()) == ("", [f"Error: {SENTENCE}", outage.TRY_AGAIN])
    assert json.loads(document)["error"] == {"code": "database_locked", "message": SENTENCE}
    assert Memory.objects.count() == 0


@pytest.mark.slow
def test_a_session_that_runs_meanwhile_is_followed_to_its_end(house, settings, tmp_path):
    settings.CLAUDEOPS_CLAUDE_BIN = str(slow_cli(tmp_path))
    settings.CLAUDEOPS_CLAUDE_HOME = settings.CLAUDEOPS_WORK_DIR = str(tmp_path)
    name = connection.settings_dict["NAME"]
    queue.request_session(agent=None, trigger="manual", by="operator", prompt_task="look")
    with started("runworker", log=tmp_path / "log", DATABASE_URL=f"sqlite:///{name}?timeout=1") as worker:
        until(lambda: Session.objects.running().exclude(ingest_offset=0).exists(), worker.output())
        with locked(Path(name)):
            until(lambda: f"{SENTENCE} Trying again." in worker.output(), "the follower meets the lock")
            assert house.get("/sessions/1").status_code == 200
        queue.request_stop(Session.objects.get().pk, by="operator")
        until(lambda: not Session.objects.running().exists(), "the session stops")
    session = Session.objects.get()
    assert (session.status, session.status_reason) == (Status.STOPPED, "Stopped by operator.")
    assert "Traceback" not in worker.output()


def test_what_looks_through_the_data_folder_keeps_the_locks_of_the_live_database(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    live = copy_of_database(tmp_path / "house.db")  # no name that is known as a database's
    begin = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 0).execute('BEGIN IMMEDIATE')"
    with connected(live), transaction.atomic():
        Memory.objects.all().delete()
        assert list(text_files()) == []
        assert purged.scrub(Needles(["jellyfin"]), write=False).left == {}
        other = processes.start(["-c", begin, str(live)])
        assert "database is locked" in other.communicate()[1]


def test_a_database_that_cannot_be_opened_is_said_by_readyz_and_the_commands(house, tmp_path):
    with connected(tmp_path / "no-such-folder" / "house.sqlite3"):
        answer = Client().get("/readyz")
        assert (answer.status_code, answer.json()["reason"]) == (503, "The database does not answer.")
        with pytest.raises(OperationalError) as error:
            Memory.objects.count()
    found = outage.named_in(error.value)
    assert (found.status, found.code, found.retry_after) == (503, "database_unreachable", 5)
