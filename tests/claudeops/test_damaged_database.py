"""A damaged SQLite file: what every command, page and route says of it, and what doctor and /readyz find."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client

from claudeops import health
from claudeops.features import doctor
from claudeops.lib import sqlite_damage
from claudeops.lib.cli import VerbCommand
from claudeops.lib.sqlite_damage import DAMAGED, OK, UNFINISHED, quick_check
from memories import access
from memories.models import Scope
from tests.support import processes
from tests.support.factories import MemoryFactory, SessionFactory
from tests.support.outages import connected, copy_of_database

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "postgresql", reason="SQLite's own file"),
]

COMMANDS = [
    ("memory", "list"),
    ("memory", "status"),
    ("memory", "context"),
    ("memory", "recall", "jellyfin"),
    ("memory", "decay"),
    ("memory", "add", "--category", "timing", "jellyfin takes a minute"),
    ("session", "list"),
    ("session", "show", "1"),
    ("session", "reap"),
    ("cooldown", "list"),
    ("token", "list"),
    ("embeddings", "status"),
    ("secrets", "scan"),
]
PAGES = ["/", "/feed", "/sessions", "/sessions/1", "/memories", "/events", "/cooldowns", "/admin/memories/memory/"]


class House:
    """A database with some rows, and what signs in to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        copy_of_database(path)
        with connected(path):
            for number in range(200):
                MemoryFactory(observation=f"Fact number {number} of the house, which is long enough to need pages")
            SessionFactory()
            client = Client()
            client.force_login(get_user_model().objects.create_superuser("operator"))
            self.cookies = client.cookies
            self.token = access.add_token("damage", scopes=[Scope.READ], by="operator")[1]
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with sqlite3.connect(path) as database:
            self.size = database.execute("PRAGMA page_size").fetchone()[0]
            self.roots = dict(database.execute("SELECT name, rootpage FROM sqlite_master"))


def truncated(file: Path, house: House) -> None:
    os.truncate(file, file.stat().st_size // 2)


def zeroed_page(file: Path, house: House) -> None:
    overwrite(file, (house.roots["sessions"] - 1) * house.size, bytes(house.size))


def header(file: Path, house: House) -> None:
    overwrite(file, 0, b"\0" * 100)


def garbage(file: Path, house: House) -> None:
    file.write_bytes(random.Random(5).randbytes(file.stat().st_size))


def random_page(file: Path, house: House) -> None:
    overwrite(file, (house.roots["memories"] - 1) * house.size, random.Random(7).randbytes(house.size))


DAMAGES: list[Callable[[Path, House], None]] = [truncated, zeroed_page, header, garbage, random_page]


def overwrite(file: Path, at: int, content: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(content)


@pytest.fixture(scope="module")
def house(django_db_setup, django_db_blocker, tmp_path_factory) -> House:
    with django_db_blocker.unblock():
        return House(tmp_path_factory.mktemp("house") / "whole.sqlite3")


@pytest.fixture(params=DAMAGES, ids=lambda damage: damage.__name__)
def damaged(request, house, tmp_path, settings) -> Iterator[Path]:
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    settings.CLAUDEOPS_CLAUDE_BIN = "no-claude-here"
    file = tmp_path / "house.sqlite3"
    shutil.copy(house.path, file)
    request.param(file, house)
    with connected(file):
        yield file


def ran(*arguments: str) -> tuple[int, str]:
    """Run a command of ours in this process; returns its exit code and what it printed."""
    out, err = StringIO(), StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=err)
    except SystemExit as left:
        return int(left.code or 0), out.getvalue() + err.getvalue()
    return 0, out.getvalue() + err.getvalue()


def says_what_is_damaged(text: str) -> bool:
    return "house.sqlite3 is damaged (SQLite: " in text and "`manage.py restore` brings a backup back." in text


def test_every_command_works_or_says_what_is_damaged(damaged):
    said = 0
    for arguments in COMMANDS:
        code, text = ran(*arguments)
        # What SQLite reads without an error from a damaged page is missing.
        assert code == 0 or says_what_is_damaged(text) or text.startswith("Error: There is no session 1."), text
        assert len(text.splitlines()) <= 2 or code == 0
        said += code
    assert said >= 2
    code, text = ran("memory", "list", "--json")
    if code:
        document = json.loads(text)
        assert (document["ok"], document["error"]["code"]) == (False, "database_damaged")
        assert document["fix"] == sqlite_damage.FIX


def test_doctor_counts_it_and_the_rest_is_left_out(damaged):
    code, text = ran("doctor")
    assert code == 1
    assert says_what_is_damaged(text)
    assert [f.level for f in doctor.examine().findings if f.subject == "database"] == [doctor.ERROR]


def test_readyz_says_it(damaged, client):
    response = client.get("/readyz")
    assert response.status_code == 503
    assert says_what_is_damaged(response.json()["reason"])


def test_every_page_and_route_works_or_says_it_in_its_form(damaged, house, caplog):
    client = Client(raise_request_exception=False)
    client.cookies = house.cookies
    found = []
    for page in PAGES:
        response = client.get(page)
        found.append(response.status_code)
        # A signed-in person whose session cannot be read is sent to sign in.
        assert response.status_code in (200, 302, 404) or (
            response.status_code == 503 and says_what_is_damaged(response.content.decode())
        ), (page, response.status_code)
    assert 503 in found
    for route in ("/api/memories", "/api/sessions", "/mcp", "/hooks/Stop"):
        body = {} if route.startswith("/api/") else {"data": "{}", "content_type": "application/json"}
        call = client.post if body else client.get
        response = call(route, headers={"authorization": f"Bearer {house.token}"}, **body)
        if response.status_code == 503:
            found = response.json()["error"]
            assert found["code"] == "database_damaged"
            assert says_what_is_damaged(found["message"])
        else:
            assert response.status_code < 500
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("arguments", [("migrate",), ("runworker",)], ids=" ".join)
def test_a_process_ends_with_one_sentence(house, tmp_path, arguments):
    file = tmp_path / "house.sqlite3"
    shutil.copy(house.path, file)
    garbage(file, house)
    process = processes.manage(*arguments, more={"DATABASE_URL": f"sqlite:///{file}"})
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert says_what_is_damaged(out + err)
    assert "Traceback" not in out + err


def test_wrong_values_of_a_damaged_page_are_explained_too(house, tmp_path):
    file = tmp_path / "house.sqlite3"
    shutil.copy(house.path, file)
    random_page(file, house)
    with connected(file):
        assert sqlite_damage.behind(ValueError("Invalid isoformat string")) != ""
    with connected(house.path):
        assert sqlite_damage.behind(ValueError("Invalid isoformat string")) == ""


def test_damage_of_another_file_is_not_said_of_the_database(house, tmp_path):
    copy = tmp_path / "copy.sqlite3"
    copy.write_text("no database\n" * 100)
    with connected(house.path), closing(sqlite3.connect(copy)) as database:
        try:
            database.execute("PRAGMA quick_check")
        except sqlite3.DatabaseError as error:
            assert sqlite_damage.behind(error) == ""
        else:
            pytest.fail("it was read")


def test_a_bug_of_a_whole_database_stays_a_bug(house):
    class Command(VerbCommand):
        pass

    def broken():
        raise ValueError("a bug")

    with connected(house.path), pytest.raises(ValueError, match="a bug"):
        Command().answer("memory list", broken, {})


class TestTheCheck:
    def test_a_whole_file_is_ok(self, house):
        assert quick_check(house.path, 10).state == OK

    def test_it_ends_with_its_time_and_does_not_say_ok(self, house):
        found = quick_check(house.path, 0)
        assert found.state == UNFINISHED
        assert found.said == "not finished in 0 s"

    def test_readyz_and_doctor_say_that_it_is_not_finished(self, house, client, monkeypatch):
        monkeypatch.setattr(health, "CHECK_SECONDS", 0)
        monkeypatch.setattr(doctor, "CHECK_SECONDS", 0)
        with connected(house.path):
            answer = client.get("/readyz").json()
            assert answer == {"ok": True, "note": "quick check of the database: not finished in 0 s"}
            text = next(f.text for f in doctor.examine().findings if f.subject == "database")
        assert "quick check not finished in 0 s" in text

    def test_readyz_checks_once_a_minute_and_another_file_at_once(self, house, tmp_path, client, monkeypatch):
        file = tmp_path / "house.sqlite3"
        shutil.copy(house.path, file)
        calls = []
        real = sqlite_damage.quick_check
        monkeypatch.setattr(sqlite_damage, "quick_check", lambda *given: calls.append(given) or real(*given))
        with connected(file):
            assert client.get("/readyz").json() == {"ok": True}
            assert client.get("/readyz").json() == {"ok": True}
            assert len(calls) == 1
            restored = tmp_path / "restored.sqlite3"
            shutil.copy(house.path, restored)
            restored.replace(file)
            client.get("/readyz")
        assert len(calls) == 2

    def test_a_missing_file_is_not_made(self, tmp_path):
        assert quick_check(tmp_path / "none.sqlite3", 1).state == UNFINISHED
        assert not (tmp_path / "none.sqlite3").exists()

    def test_a_file_that_is_no_database_is_damaged(self, tmp_path):
        (tmp_path / "notes.txt").write_text("no database\n" * 100)
        assert quick_check(tmp_path / "notes.txt", 1).state == DAMAGED
