"""How the API answers whatever comes: always JSON, with a code, a message and what to do; and its document."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from memories.access import add_token
from memories.api import memories as routes
from tests.memories.people import signed_in
from tests.support.api_callers import Caller, bearer, problem
from tests.support.factories import AgentFactory, MemoryFactory

pytestmark = pytest.mark.django_db


def test_a_body_that_is_no_json_is_refused():
    caller = bearer("admin")
    client = Client(raise_request_exception=False)
    for body in ("{", "\xff", '{"observation": '):
        response = client.post(
            "/api/memories", body, content_type="application/json", headers={"Authorization": f"Bearer {caller.secret}"}
        )
        assert problem(response) == (400, "unreadable_body")


BODIES = {
    "multipart": (
        "multipart/form-data; boundary=x",
        b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\nx\r\n--x--\r\n',
    ),
    "multipart without a boundary": ("multipart/form-data", b"x"),
    "a form": ("application/x-www-form-urlencoded", b"title=x&_method=PUT"),
    "XML": ("text/xml", b"<a/>"),
    "another charset": ("application/json; charset=nonsense", b"\xff\xfe\x00"),
    "bytes": ("application/octet-stream", bytes(range(256))),
    "no type": ("", b"x"),
    "nothing": ("application/json", b""),
    "deep nesting": ("application/json", b"[" * 100_000),
}
DOORS = ("/api/alerts?agent=x", "/api/recall", "/api/memories", "/api/sessions", "/mcp", "/hooks/PreToolUse")


@pytest.mark.parametrize("door", DOORS)
def test_a_body_of_another_type_is_refused_at_every_door(door, subtests):
    _, secret = add_token("caller", ["run", "read", "write", "hook"], by="operator")
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    for kind, (content_type, body) in BODIES.items():
        with subtests.test(kind):
            headers = {"Authorization": f"Bearer {secret}", "Accept": "application/json, text/event-stream"}
            answer = client.generic("POST", door, body, content_type=content_type, headers=headers)
            assert answer.status_code in ((422,) if kind == "nothing" and "/api/" in door else (400, 415))
            if door.startswith("/api/") and kind in ("multipart", "a form", "XML", "bytes"):
                assert problem(answer) == (415, "unsupported_media_type")


def test_json_that_says_to_be_a_form_is_read_as_curl_sends_it():
    caller = bearer("write")
    body = json.dumps({"observation": "The disks are slow", "category": "behavior"})
    headers = {"Authorization": f"Bearer {caller.secret}"}
    form = "application/x-www-form-urlencoded"
    assert Client().post("/api/memories", body, content_type=form, headers=headers).status_code == 201


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nowhere", "/api/memories/1/2/3"])
def test_what_is_no_route_is_said_in_json(path):
    for method in ("GET", "POST"):
        assert problem(bearer("admin", name=method).ask(method, path)) == (404, "not_found")


def test_a_method_that_is_not_for_it_is_said_in_json():
    response = bearer("admin").put("/api/memories", {})
    assert problem(response) == (405, "method_not_allowed")
    assert set(response.headers["Allow"].split(", ")) == {"GET", "POST"}


def test_a_fault_of_the_program_tells_the_caller_no_detail_and_the_log_everything(monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise RuntimeError("the secret detail")

    monkeypatch.setattr(routes, "visible_memories", broken)
    response = bearer("read").get("/api/memories")
    assert problem(response) == (500, "internal_error")
    assert "secret detail" not in response.content.decode()
    assert "the secret detail" in caplog.text


def test_no_answer_is_kept_by_a_cache():
    assert bearer("read").get("/api/memories").headers["Cache-Control"] == "no-store"


def test_a_cookie_and_a_forged_form_open_nothing(operator):
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    assert problem(client.post("/api/memories", {"observation": "x", "category": "timing"})) == (401, "no_token")


def test_the_document_names_every_route_with_its_scope_and_its_refusals():
    document = bearer("read").get("/api/openapi.json").json()
    assert document["openapi"].startswith("3.")
    for path, methods in document["paths"].items():
        assert path.startswith("/api/")
        for operation in methods.values():
            assert operation["security"], path
            assert operation["summary"]
            assert {"401", "403", "422"} <= set(operation["responses"])


def test_the_document_is_for_who_has_a_token_or_is_signed_in(client, stranger):
    assert problem(client.get("/api/openapi.json")) == (401, "no_token")
    client.force_login(stranger)
    assert problem(client.get("/api/openapi.json")) == (401, "no_token")
    assert signed_in("viewer").get("/api/openapi.json").status_code == 200
    assert Client().get("/api/docs").status_code == 302


def test_the_page_shows_every_route_and_loads_nothing_from_elsewhere():
    client = signed_in("viewer")
    html = client.get("/api/docs").content.decode()
    document = client.get("/api/openapi.json").json()
    for path in document["paths"]:
        assert f"<code>{path}</code>" in html
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', html)
    assert "<style" not in html
    assert not re.search(r"<script(?![^>]* src=)", html)
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert json.dumps(document)


@pytest.mark.parametrize(
    ("method", "path", "body", "names"),
    [
        ("GET", "/api/memories?sevrice=x", None, {"sevrice"}),
        ("GET", "/api/memories?status=sleeping", None, {"status"}),
        ("GET", "/api/memories?active=perhaps", None, {"active"}),
        ("GET", "/api/memories?sort=age", None, {"sort"}),
        ("GET", "/api/sessions?after=x", None, {"after"}),
        ("GET", "/api/cooldowns/check", None, {"action", "service"}),
        ("POST", "/api/memories", {"colour": "red", "tags": [1]}, {"observation", "category", "colour", "tags.0"}),
        ("POST", "/api/memories", {"observation": "It is slow", "category": "weather"}, {"category"}),
        ("POST", "/api/memories/bulk", {"action": "explode"}, {"action"}),
        ("POST", "/api/memories/bulk", {"action": "delete", "filter": {"a": "b"}}, {"filter.a"}),
        ("POST", "/api/sessions", {"agent": "watcher", "tier": 3}, {"tier"}),
    ],
)
def test_a_refusal_names_each_field_that_is_wrong(method, path, body, names):
    AgentFactory(slug="watcher", tier=1)
    _, secret = add_token("any", ["admin"], by="operator", max_tier=3)
    response = Caller(secret).ask(method, path, body)
    assert problem(response)[0] == 422
    assert set(response.json()["error"]["fields"]) == names


def test_the_page_shows_the_forms_of_an_alert():
    html = signed_in("viewer").get("/api/docs").content.decode()
    for name in ("AlertGroup", "UptimeKuma", "GrafanaLegacy", "Generic", "groupKey", "severity"):
        assert name in html, name


def test_a_refusal_of_no_field_has_no_fields_and_one_without_advice_no_fix():
    document = bearer("read").get("/api/memories/7").json()
    assert set(document["error"]) == {"code", "message"}
    body = {"observation": " ", "category": "timing"}
    memory = MemoryFactory()
    document = bearer("write", name="writer").put(f"/api/memories/{memory.pk}", body).json()
    assert set(document) == {"error"}
    assert document["error"]["fields"] == {"observation": document["error"]["message"]}


def test_a_conflict_shows_what_is_stored_now():
    memory = MemoryFactory(observation="Before")
    caller = bearer("write", "read")
    caller.put(f"/api/memories/{memory.pk}", {"observation": "After", "seen": 0})
    late = caller.put(f"/api/memories/{memory.pk}", {"observation": "Late", "seen": 0})
    assert problem(late) == (409, "conflict")
    current = late.json()["error"]["current"]
    assert (current["id"], current["observation"]) == (memory.pk, "After")


def test_a_body_that_is_too_big_is_refused(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    response = bearer("write").post("/api/memories", {"observation": "x" * 1000, "category": "timing"})
    assert problem(response) == (413, "too_big")


def test_the_document_states_the_refusals_that_a_route_can_give():
    paths = bearer("read").get("/api/openapi.json").json()["paths"]
    reading, changing = paths["/api/memories"]["get"]["responses"], paths["/api/memories"]["post"]["responses"]
    assert set(reading) == {"200", "401", "403", "404", "422", "500", "503", "507"}
    assert set(changing) - set(reading) == {"201", "202", "400", "409", "413"}
