"""Times of year 1, of the future and beyond what a zone can carry: no column keeps them, no page or route fails."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models
from django.test import Client
from django.utils import timezone

from claudeops.lib import times
from memories import access
from memories.errors import InvalidMemory
from memories.exchange.import_export import import_lines
from memories.lifecycle import verbs
from memories.models import Memory
from sessions_app.models import Session
from sessions_app.runner.importer import import_log
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

HOSTILE = [
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "1970-01-01T00:00:00Z",
    "2199-12-31T23:59:59Z",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-12:00",
]
PAST = ("created_at", "updated_at", "approved_at", "decayed_until")
FUTURE = {"memories.Memory.expires_at", "sessions_app.Agent.next_run_at"}
"""Columns that hold a time to come; all others say when something happened."""


def columns() -> list[tuple[type[models.Model], str]]:
    """Every DateTime column of claudeops's own tables."""
    return [
        (model, field.name)
        for app in ("claudeops", "memories", "sessions_app")
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, models.DateTimeField)
    ]


def wrong_times() -> list[str]:
    now, found = timezone.now(), []
    for model, name in columns():
        path = f"{model._meta.label}.{name}"
        latest = times.LATEST if path in FUTURE else now + times.AHEAD
        for value in model._default_manager.exclude(**{name: None}).values_list(name, flat=True):
            if not times.EARLIEST <= value <= latest:
                found.append(f"{path} is {value}")
    return found


def log_of(when: str, session: str) -> str:
    text = "[MEMORY:timing:db] The dump takes an hour\n[EVENT:warning:db] slow\n[COOLDOWN:restart:db] success - it hung"
    content = [{"type": "text", "text": text}, {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]
    lines = [
        {"type": "system", "subtype": "init"},
        {"type": "assistant", "message": {"id": "m", "content": content}},
        {"type": "result", "subtype": "success", "is_error": False, "duration_ms": 2**53, "num_turns": 1},
    ]
    return "".join(json.dumps({**line, "session_id": session, "timestamp": when}) + "\n" for line in lines)


def test_no_column_keeps_a_hostile_time_of_an_imported_log(tmp_path, settings):
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    for number, when in enumerate(HOSTILE):
        path = tmp_path / f"log-{number}"
        path.write_text(log_of(when, f"session-{number}"))
        for touched in (0, 4e9):  # 1970, 2096
            os.utime(path, (touched, touched))
            import_log(path, by="anna")
    assert Session.objects.count() == len(HOSTILE)
    assert len({session.stats.get("bad_fields", 0) for session in Session.objects.all()}) == 1, "each is counted"
    assert wrong_times() == []


def exported(**more: object) -> str:
    return json.dumps({"taxonomy": "ops", "category": "timing", "observation": "The dump takes an hour", **more})


@pytest.mark.parametrize("when", HOSTILE)
@pytest.mark.parametrize("name", [*PAST, "expires_at"])
@pytest.mark.parametrize("trust", [True, False])
def test_an_import_of_memories_names_the_line_of_a_hostile_time(name, when, trust):
    line = exported(**({"created_at": "2026-01-01T00:00:00Z"} | {name: when}))
    if name == "expires_at" and when.startswith("2199"):
        assert import_lines([line], by="anna", trust=trust)
    else:
        with pytest.raises(InvalidMemory, match=rf"(?s)1.*{name}"):
            import_lines([exported(observation="A good line"), line][::-1], by="anna", trust=trust)
        assert not Memory.objects.exists()
    assert wrong_times() == []


@pytest.mark.parametrize("when", HOSTILE)
def test_a_memory_expires_within_what_can_be_reckoned_with(when, operator):
    memory = MemoryFactory()
    secret = access.add_token("writer", scopes=["read", "write"], by="anna")[1]
    answer = Client().put(
        f"/api/memories/{memory.pk}",
        json.dumps({"expires_at": when}),
        content_type="application/json",
        headers={"authorization": f"Bearer {secret}"},
    )
    assert answer.status_code == (200 if when.startswith("2199") else 422)
    if "+" not in when and "-12:" not in when:
        try:
            verbs.edit(memory, by="anna", expires_at=datetime.fromisoformat(when))
        except InvalidMemory as error:
            assert "expires_at" in str(error)
    assert wrong_times() == []


def test_a_command_refuses_a_hostile_end(capsys):
    memory = MemoryFactory()
    for day in ("0001-01-01", "9999-12-30"):
        with pytest.raises(SystemExit):
            call_command("memory", "edit", str(memory.pk), "--expires", day)
        assert "allowed are the years 2000 to 2200" in capsys.readouterr().err
    assert wrong_times() == []


@pytest.mark.parametrize("when", HOSTILE)
def test_no_page_or_route_fails_when_it_compares_with_a_hostile_time(when, operator):
    MemoryFactory()
    client = Client()
    client.force_login(operator)
    asked = quote(when)
    for page in (
        f"/sessions?since={asked}",
        f"/sessions/rows?until={asked}",
        f"/events?since={asked}",
        f"/events/rows?until={asked}",
        f"/feed?before={asked}~s1",
        f"/memories?after={asked}~1",
        f"/memories/recall?query=x&as_of={asked}",
    ):
        assert client.get(page).status_code < 500
    secret = access.add_token("reader", scopes=["read"], by="anna")[1]
    headers = {"authorization": f"Bearer {secret}"}
    for route in (
        f"/api/sessions?since={asked}",
        f"/api/sessions?after={asked}~1",
        f"/api/events?until={asked}",
        f"/api/events?after={asked}~1",
        f"/api/memories?after={asked}~1",
        f"/api/memories?sort=updated&after={asked}~1",
    ):
        assert client.get(route, headers=headers).status_code < 500
    body = json.dumps({"query": "x", "as_of": when})
    assert client.post("/api/recall", body, content_type="application/json", headers=headers).status_code < 500


def test_every_column_with_a_time_is_looked_at():
    names = {f"{model._meta.label}.{name}" for model, name in columns()}
    assert names >= FUTURE | {"sessions_app.Session.ended_at", "sessions_app.LogEntry.at", "memories.MemoryChange.at"}


class TestTheRule:
    NOW = datetime(2026, 5, 1, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("at", "stored"),
        [
            (times.EARLIEST, times.EARLIEST),
            (times.EARLIEST - timedelta(seconds=1), None),
            (NOW, NOW),
            (NOW + times.AHEAD, NOW),
            (NOW + times.AHEAD + timedelta(seconds=1), None),
        ],
    )
    def test_what_may_have_happened(self, at, stored):
        assert times.happened(at, self.NOW) == stored

    @pytest.mark.parametrize("text", ["2026-05-01T00:00:00", "0001-01-01T00:00:00+14:00", "soon", ""])
    def test_what_is_no_time(self, text):
        with pytest.raises(ValueError):
            times.parse(text)
