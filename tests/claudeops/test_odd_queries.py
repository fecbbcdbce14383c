"""Whatever is sent as a filter, a query or a file of memories is answered or refused, never an exception."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from hypothesis import example, given
from hypothesis import strategies as st

from claudeops.api import api
from claudeops.features.backups.folder import MANIFEST, BackupError
from claudeops.features.backups.manifest import read
from memories.errors import MemoriesError
from memories.exchange.import_export import import_lines
from memories.exchange.packs import read_pack
from memories.queries.filters import MemoryChangeFilterSet, MemoryFilterSet
from memories.recall import Filters, recall
from sessions_app.errors import SessionsError
from sessions_app.escalation import requested_escalation
from sessions_app.hooks.events import parse
from sessions_app.queries.filters import EventListFilterSet, SessionFilterSet
from tests.support.api_callers import bearer
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

TIMES = st.sampled_from(
    ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2026-02-30", "-1", "1e999", "today"]
)
NUMBERS = st.integers(-(2**70), 2**70).map(str)
TEXTS = st.text(max_size=40)
VALUES = st.one_of(TIMES, NUMBERS, TEXTS, st.sampled_from(["%00", "null", "general", "none", "x" * 5000, "a,b", "٣"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | TIMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FIELDS = (  # noqa: SIM905
    "uuid taxonomy category service project agent observation confidence active inactive_reason tier source verdict "
    "tags persistent merged_count created_at updated_at expires_at approved_at decayed_until superseded_by signature"
).split()
ROWS = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6).map(
    lambda odd: {"taxonomy": "ops", "category": "timing", "observation": "The dump takes an hour"} | odd
)


@pytest.mark.parametrize("filters", [MemoryFilterSet, MemoryChangeFilterSet, SessionFilterSet, EventListFilterSet])
@given(data=st.data())
def test_filters(filters, data):
    names = sorted(filters.base_filters)
    found = filters(data.draw(st.dictionaries(st.sampled_from(names), VALUES, min_size=1, max_size=4)))
    if found.is_valid():
        list(found.qs[:3])


@given(query=st.one_of(TEXTS, st.text('"*^():-+~AND OR NEAR密码', max_size=60), VALUES))
def test_queries(query):
    if not MemoryFilterSet().qs.exists():
        MemoryFactory(observation="The dump takes an hour")
    recall(query, Filters())


@example(lines=['{"category": "timing", "observation": "The dump takes an hour", "service": [null]}'], trust=False)
@given(lines=st.lists(ROWS.map(json.dumps) | JSON.map(json.dumps) | TEXTS, min_size=1, max_size=3), trust=st.booleans())
def test_files_of_memories(lines, trust):
    try:
        import_lines(lines, by="anna", trust=trust)
    except MemoriesError as refused:
        assert "line" in str(refused) or str(refused)


DEPTHS = (101, 500, 990, 100_000)
DEEP = [opened * depth + closed * depth for opened, closed in (("[", "]"), ('{"a":[', "]}")) for depth in DEPTHS]


def test_deeply_nested_json_is_refused_by_what_reads_a_file(tmp_path):
    reads = {
        "memory import": lambda text: import_lines([text], by="anna"),
        "memory import, a field": lambda text: import_lines(
            [f'{{"category": "timing", "observation": "Takes an hour", "tags": {text}}}'], by="anna"
        ),
        "pack": read_pack,
        "hook": lambda text: parse("Stop", text.encode()),
        "hook, a field": lambda text: parse("Stop", f'{{"session_id": "x", "tool_input": {text}}}'.encode()),
        "manifest": lambda text: (tmp_path / MANIFEST).write_text(text) and read(tmp_path),
    }
    for name, reader in reads.items():
        for text in DEEP:
            with pytest.raises((MemoriesError, SessionsError, BackupError), match="nested deeper than 100 levels"):
                reader(text)
                pytest.fail(name)
    handoff = tmp_path / "handoff.json"
    for text in (text for text in DEEP if len(text) < 60_000):
        handoff.write_text(text)
        assert "nested deeper than 100 levels" in requested_escalation(None, handoff).problem


def test_deeply_nested_json_is_refused_at_every_door():
    doors = [
        (method.upper(), re.sub(r"\{\w+\}", "1", path))
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    ]
    events = ("SessionStart", "SessionEnd", "SubagentStop", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    doors += [("POST", f"/hooks/{event}") for event in events]
    client = Client(raise_request_exception=False)
    tokens = {
        "/hooks": bearer("hook", name="hook").secret,
        "/api": bearer("admin").secret,
        "/mcp": bearer("read", name="m").secret,
    }
    wholes = ("%s", '{"title": "x", "alerts": [{"labels": %s}]}', '{"session_id": "x", "cwd": "/x", "tool_input": %s}')
    for method, path in [*doors, ("POST", "/mcp")]:
        secret = next(secret for start, secret in tokens.items() if path.startswith(start))
        for text in DEEP:
            for whole in wholes if "/hooks" in path or "alerts" in path else wholes[:1]:
                sent = {"Authorization": f"Bearer {secret}", "Accept": "application/json, text/event-stream"}
                answer = client.generic(method, path, whole % text, "application/json", headers=sent)
                assert answer.status_code < 500, (method, path, whole, text[:9], len(text))
