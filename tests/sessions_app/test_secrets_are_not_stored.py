"""Credentials of many kinds go in by every way there is; none is stored anywhere, and none is in the next prompt."""

from __future__ import annotations

import io
import json
import logging

import pytest
from django.urls import reverse

from claudeops.lib.secrets import mask
from memories.access import Access
from memories.lifecycle import verbs
from memories.lifecycle.merge import merge
from memories.models import Memory
from memories.recall import keyword_index
from sessions_app import queue
from sessions_app.mcp import tools
from sessions_app.models import Event, LogEntry, Runner, Session, Status, Trigger
from sessions_app.runner.importer import import_log
from sessions_app.runner.ingest import ingest, log_path
from sessions_app.runner.launch import folder_of
from sessions_app.runner.run import run_session
from tests.support.api_callers import bearer
from tests.support.credentials import sentences, stored_bytes
from tests.support.factories import AgentFactory, MemoryFactory
from tests.support.streams import init, line, result, text, tool_result, tool_use, write

pytestmark = pytest.mark.django_db(transaction=True)

SAID = sentences()


@pytest.fixture
def logged():
    """What the configured handlers write."""
    written = io.StringIO()
    changed = [
        (handler, handler.setStream(written))
        for handler in logging.getLogger("sessions_app").handlers
        if handler.filters
    ]
    yield written
    for handler, stream in changed:
        handler.setStream(stream)


def leaks() -> list[tuple[str, str]]:
    places = stored_bytes()
    lowered = {place: data.lower() for place, data in places.items()}  # terms of the index are in lower case
    return [
        (said, place)
        for value, said in SAID.items()
        for place, data in lowered.items()
        if value.lower().encode() in data
    ]


def lines_of(number: int, said: str) -> list[str]:
    return [
        text(
            f"Looked at it: {said}\n[MEMORY:behavior:svc{number}] Seen on host {number}: {said}\n"
            f"[EVENT:warning:svc{number}] Found that {said}\n[COOLDOWN:restart:svc{number}] success — because {said}"
        ),
        tool_use(f"echo {said!r}"),
        tool_result(f"{'x' * (4090 - number * 3)} {said}\n{said}", is_error=bool(number % 2)),
    ]


def answer(said: list[str]) -> dict:
    return {
        "summary": " ".join(said),
        "events": [{"level": "info", "message": f"structured: {one}"} for one in said],
        "memories": [{"key": f"s{n}:timing", "value": f"Takes {n} s: {one}"} for n, one in enumerate(said)],
        "services_checked": [{"name": f"c{n}", "status": "down", "detail": one} for n, one in enumerate(said)],
        "escalation": {"needed": True, "reason": said[0], "context": " ".join(said), "failed_checks": said},
    }


def test_no_credential_is_stored_by_any_way(tmp_path, logged, operator, client):
    said = list(SAID.values())
    assert [one for value, one in SAID.items() if value in mask(one)] == []
    stream = write(
        tmp_path / "stream.jsonl",
        init(mcp_servers=[{"name": one, "status": "failed"} for one in said]),
        *(part for number, one in enumerate(said) for part in lines_of(number, one)),
        line(type="system", subtype="informational", content=said[0]),
        result(
            " ".join(said),
            is_error=True,
            errors=said,
            structured_output=answer(said),
            permission_denials=[{"tool_name": "Bash", "tool_input": {"command": f"{'y' * 180} {one}"}} for one in said],
        ),
    )
    agent = AgentFactory(runner=Runner.REPLAY, replay_stream=str(stream), prompt_template=f"{{{{ base }}}} {said[1]}")
    session = queue.request_session(
        agent=agent, trigger=Trigger.API, by="anna", prompt_task="\n".join(said), wake=False
    )
    folder_of(session).mkdir(parents=True)
    (folder_of(session) / "stderr.log").write_text("\n".join(f"{'z' * 300} {one}" for one in said))
    run_session(session.pk)
    session.refresh_from_db()
    assert session.stats["secrets_masked"] > len(said) and session.ingest_offset == log_path(session).stat().st_size
    assert Event.objects.filter(message__contains="[secret: GitHub token]").count() >= 2
    memory = Memory.objects.filter(observation__contains="[secret: GitHub token]").first()
    assert memory is not None
    assert "[secret: " in session.error and "[secret: GitHub token]" in session.task

    other = write(tmp_path / "other.jsonl", *(one.replace("svc", "imp") for one in stream.read_text().splitlines(True)))
    other.write_text(other.read_text().replace('"session_id": "67cde26f', '"session_id": "77cde26f'))
    imported = import_log(other, by="anna")
    assert [one.outcome for one in imported.sessions] == ["imported"]

    writer = bearer("read", "write", "run", "review")  # they are about credentials, so they wait for a person
    for number, one in enumerate(said):
        made = writer.post(
            "/api/memories",
            {"category": "timing", "service": f"api{number}", "observation": f"Waits {number} s, {one}", "tags": []},
        ).json()["memory"]
        assert writer.put(f"/api/memories/{made['id']}", {"observation": f"Edited: {one}"}).status_code == 200
        verbs.edit(made["id"], by="anna", observation=f"Once more: {one}", reason=one[:400])
    assert writer.post("/api/sessions", {"agent": agent.slug, "prompt": said[0]}).status_code == 202
    assert writer.post("/api/recall", {"query": said[0]}).status_code == 200

    client.force_login(operator)
    known = MemoryFactory(observation="The nightly job starts at two.", service="cron")
    doubled = MemoryFactory(observation="The nightly job begins at 2.", service="cron")
    page = client.put(reverse("memory", args=[known.pk]), f"observation={said[0]}", "application/x-www-form-urlencoded")
    assert page.status_code in (200, 302)
    merge(known, [doubled], by="anna", observation=f"Merged: {said[2]}", reason=said[3])
    say_by_mcp(said)
    keyword_index.catch_up()

    following = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="anna", wake=False)
    run_session(following.pk)
    following.refresh_from_db()
    assert [one for value, one in SAID.items() if value in following.prompt + following.injected_text] == []
    assert leaks() == []
    written = logged.getvalue()
    assert "reported an error" in written and [one for value, one in SAID.items() if value in written] == []


def say_by_mcp(said: list[str]) -> None:
    session = Session.objects.first()
    access = Access("agent:x", frozenset({"write"}), session_id=session.pk)
    for one in said:
        tools.log_event(access, "info", f"By MCP: {one}", None)
        tools.remember(access, f"By MCP it is known: {one}", "behavior", None)


def test_replaying_a_masked_log_gives_the_same_rows(tmp_path):
    stream = write(tmp_path / "s.jsonl", init(), *lines_of(1, next(iter(SAID.values()))), result("Done."))
    agent = AgentFactory(runner=Runner.REPLAY, replay_stream=str(stream))
    session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="anna", wake=False)
    run_session(session.pk)
    log = log_path(Session.objects.get(pk=session.pk))
    assert b"[secret: GitHub token]" in log.read_bytes() and log.stat().st_mode & 0o777 == 0o400
    assert all(json.loads(one) for one in log.read_text().splitlines())

    def rows():
        entries = LogEntry.objects.filter(session=session).values_list("seq", "text", "offset")
        return list(entries), list(Event.objects.values_list("message", "fingerprint")), Memory.objects.count()

    before = rows()
    LogEntry.objects.all().delete()
    Session.objects.filter(pk=session.pk).update(ingest_offset=0, ingest_state={}, stats={}, status=Status.RUNNING)
    ingest(session.pk, final=True)
    assert rows() == before
