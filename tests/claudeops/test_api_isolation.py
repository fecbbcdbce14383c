"""Every route of the API: closed without its scope, and with a project nothing of another one comes out or changes.

The routes are read from the API itself, so that one that is added later is tried too, or fails here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management.color import no_style
from django.db import connection
from django.test import Client

from claudeops.api import api
from memories.models import Memory, MemoryChange, Project, Proposal, Scope, Verdict
from sessions_app.models import Event, Session, Status
from tests.support.api_callers import bearer, problem
from tests.support.factories import (
    AgentFactory,
    CooldownActionFactory,
    EventFactory,
    FactFactory,
    MemoryFactory,
    ProjectFactory,
    ProposalFactory,
    SegmentFactory,
    SessionFactory,
)
from tests.support.undone import undone

pytestmark = pytest.mark.django_db

SECRET_WORD = "zanzibar"
"""A word in every text of the other project."""

BODIES: dict[tuple[str, str], Any] = {
    ("post", "/api/memories"): {"observation": "Takes 60 s to start", "category": "timing", "service": "caddy"},
    ("post", "/api/recall"): {"query": "it is zanzibar here", "profile": "deep", "include_hold": True},
    ("post", "/api/context"): {"task": "say what is known here"},
    ("post", "/api/journal"): {"action": "restart", "tool": "jellyfin", "detail": "It was restarted"},
    ("post", "/api/memories/bulk"): {"action": "deactivate", "filter": {}},
    ("delete", "/api/memories/bulk"): {"filter": {}},
    ("put", "/api/memories/{memory_id}"): {"observation": "Changed"},
    ("post", "/api/sessions"): {"agent": "watcher"},
    ("post", "/api/sessions/{session_id}/retry"): {"note": "Again."},
    ("post", "/api/sessions/{session_id}/continue"): {"note": "Go on."},
    ("post", "/api/alerts"): {"title": "The disk is full", "agent": "watcher"},
    ("post", "/api/projects"): {"slug": "new"},
    ("patch", "/api/projects/{project}"): {"name": "Changed"},
    ("post", "/api/projects/{project}/memories"): {"type": "warning", "content": "The build takes 60 s"},
    ("put", "/api/proposals/{proposal_id}"): {"text": "The build takes 61 s on host b."},
    ("post", "/api/proposals/{proposal_id}/approve"): {},
    ("post", "/api/proposals/{proposal_id}/reject"): {},
    ("post", "/api/proposals/{proposal_id}/undo"): {},
    ("patch", "/api/projects/{project}/memories/{memory_id}"): {"content": "The build takes 61 s"},
}
QUERIES = {
    "/api/cooldowns/check": "?action=restart&service=jellyfin",
    "/api/memories/search": "?q=it+is+zanzibar+here&profile=deep",
}
ECHOES = ("/api/recall", "/api/memories/search")
"""What repeats the query in its answer."""


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


SCOPES = {(method, path): operation["x-scope"] for method, path, operation in operations()}
ROUTES = list(SCOPES)


def address(path: str, pk: int) -> str:
    """Return the address of row `pk`, or of memory `pk + 10` of project `pk`."""
    if "{project}" in path:
        path = path.replace("{project}", str(pk)).replace("{memory_id}", str(pk + 10))
    given = path
    for name in ("memory_id", "session_id", "event_id", "transcript_id", "proposal_id"):
        given = given.replace(f"{{{name}}}", str(pk))
    return given + QUERIES.get(path, "")


@pytest.fixture
def mine():
    return ProjectFactory(pk=2, slug="mine")


@pytest.fixture
def house(mine):
    """Create rows: number 1 is the other project's, 2 mine, 3 of no project."""
    other = ProjectFactory(pk=1, slug=f"other-{SECRET_WORD}")
    for pk, project, word in ((11, other, SECRET_WORD), (12, mine, "my own")):
        words = f"It is {word} here"
        MemoryFactory(pk=pk, project=project, taxonomy="project", category="warning", service=None, observation=words)
    for pk, project, word in ((1, other, SECRET_WORD), (2, mine, "my own"), (3, None, "everybody's")):
        agent = AgentFactory(
            slug=f"{word.replace(' ', '-')}-agent", project=project, runner="replay", replay_stream="x"
        )
        session = SessionFactory(pk=pk, agent=agent, project=project, status=Status.QUEUED, summary=word)
        MemoryFactory(
            pk=pk, project=project, session=session, observation=f"It is {word} here", service=word[:8].strip()
        )
        EventFactory(pk=pk, session=session, message=f"an event of {word}")
        segment = SegmentFactory(
            part__transcript__pk=pk,
            part__transcript__project=project,
            part__transcript__installation=word,
            narrative=f"what happened at {word}",
        )
        FactFactory(segment=segment, text=f"a fact of {word}", memory_id=pk)
        ProposalFactory(pk=pk, file__project=project, text=f"The build of {word} takes 60 s.")
    EventFactory(pk=4, session=None, message="an event without a session")
    with connection.cursor() as cursor:  # what is added from here on gets numbers of its own, on PostgreSQL too
        for statement in connection.ops.sequence_reset_sql(no_style(), [Memory, Session, Event, Project, Proposal]):
            cursor.execute(statement)
    CooldownActionFactory(service="jellyfin")
    AgentFactory(slug="watcher", runner="replay", replay_stream="homelab-watch")


def test_every_route_has_a_scope_and_a_case_here():
    found = list(operations())
    assert len(found) >= 15
    for method, path, operation in found:
        assert operation["x-scope"] in Scope.values, (method, path)
        assert ("requestBody" in operation) == ((method, path) in BODIES), (method, path)
        assert operation["security"], (method, path)


def test_without_a_token_or_with_a_sign_in_alone_every_route_is_closed(operator):
    client = Client()
    client.force_login(operator)
    for method, path in ROUTES:
        sent = {"data": json.dumps(BODIES.get((method, path), {})), "content_type": "application/json"}
        for one in (Client(), client):
            response = one.generic(method.upper(), address(path, 1), **sent)
            assert problem(response) == (401, "no_token"), (method, path)


def test_a_token_without_the_scope_is_refused_by_every_route_and_changes_nothing(house, subtests):
    for method, path in ROUTES:
        with subtests.test(f"{method} {path}"), undone():
            needed = SCOPES[method, path]
            others = [scope for scope in ("read", "review", "write", "run") if scope != needed]
            before = (list(Memory.objects.values()), list(Session.objects.values("pk", "status")))
            response = bearer(*others).ask(method.upper(), address(path, 2), BODIES.get((method, path)))
            assert problem(response) == (403, "forbidden")
            assert needed in response.json()["error"]["message"]
            assert (list(Memory.objects.values()), list(Session.objects.values("pk", "status"))) == before


def test_nothing_of_another_project_comes_out_of_a_route_or_is_changed_by_it(house, mine, subtests):
    for method, path in ROUTES:
        with subtests.test(f"{method} {path}"), undone():
            caller = bearer("admin", project=mine)
            others = (1, 11) if method == "get" else (1, 3, 11)
            rows = (
                list(Memory.objects.filter(pk__in=others).values()),
                list(Session.objects.filter(pk__in=(1, 3)).values("pk", "status", "stop_requested_by", "summary")),
                list(Event.objects.values()),
                MemoryChange.objects.filter(memory__in=others).count(),
                list(Proposal.objects.filter(pk__in=(1, 3)).values()),
            )
            body = BODIES.get((method, path))
            answers = [caller.ask(method.upper(), address(path, pk), body) for pk in (1, 2, 3)]
            for response in answers:
                text = (
                    response.content.decode().replace("it is zanzibar here", "")
                    if path in ECHOES
                    else response.content.decode()
                )
                assert f"is {SECRET_WORD}" not in text if path in ECHOES else SECRET_WORD not in text
                assert "other scope" not in text
                assert response.status_code < 500
            if "{" in path:  # it is not there, whatever it is
                assert answers[0].status_code == 404
                assert problem(answers[0])[1].endswith("_not_found")
            assert (
                list(Memory.objects.filter(pk__in=others).values()),
                list(Session.objects.filter(pk__in=(1, 3)).values("pk", "status", "stop_requested_by", "summary")),
                list(Event.objects.values()),
                MemoryChange.objects.filter(memory__in=others).count(),
                list(Proposal.objects.filter(pk__in=(1, 3)).values()),
            ) == rows


def test_the_same_routes_show_everything_to_a_token_without_a_project(house):
    caller = bearer("read")
    for path in ("/api/memories", "/api/sessions", "/api/events", "/api/memories/1", "/api/sessions/1"):
        assert SECRET_WORD in caller.get(path).content.decode(), path


def test_a_token_with_a_project_reads_global_memories_and_does_not_change_them(house, mine):
    caller = bearer("admin", project=mine)
    assert {row["id"] for row in caller.get("/api/memories").json()["memories"]} == {2, 3, 12}
    assert caller.get("/api/memories/3").status_code == 200
    for response in (
        caller.put("/api/memories/3", {"observation": "Mine now"}),
        caller.delete("/api/memories/3"),
        caller.post("/api/memories/bulk", {"action": "deactivate", "ids": [2, 3]}),
        caller.post("/api/memories/bulk", {"action": "merge", "ids": [2], "target": 3}),
    ):
        assert problem(response) == (403, "forbidden")
    assert problem(caller.post("/api/memories/bulk", {"action": "merge", "ids": [2], "target": 1}))[0] == 404
    assert problem(caller.post("/api/memories/bulk", {"action": "delete", "ids": [1, 2]}))[0] == 404
    assert Memory.objects.filter(active=True).count() == 5


@pytest.mark.parametrize("name", ["other-zanzibar", "nowhere"])
def test_another_project_and_one_that_is_not_there_are_refused_alike(name, house, mine):
    caller = bearer("admin", project=mine)
    body = BODIES["post", "/api/memories"] | {"project": name}
    assert problem(caller.post("/api/memories", body)) == (403, "forbidden")
    asked = {"agent": "my-own-agent", "project": name}
    assert problem(caller.post("/api/sessions", asked)) == (403, "forbidden")
    assert problem(caller.get(f"/api/sessions?project={name}")) == (422, "invalid_filter")
    assert caller.get(f"/api/memories?project={name}").json()["memories"] == []


@pytest.mark.parametrize("name", ["zanzibar-agent", "nobody"])
def test_another_projects_agent_and_one_that_is_not_there_are_refused_alike(name, house, mine):
    caller = bearer("admin", project=mine)
    assert problem(caller.post("/api/sessions", {"agent": name})) == (404, "agent_not_found")
    assert problem(caller.get(f"/api/sessions?agent={name}")) == (422, "invalid_filter")


def test_what_a_token_with_a_project_adds_and_runs_belongs_to_its_project(house, mine):
    caller = bearer("write", "run", project=mine)
    made = caller.post("/api/memories", BODIES["post", "/api/memories"]).json()
    assert made["memory"]["project"] == "mine"
    asked = caller.post("/api/sessions", {"agent": "my-own-agent", "prompt": "Look."}).json()
    session = Session.objects.get(pk=asked["id"])
    assert (session.project, session.trigger, session.requested_by) == (mine, "api", "token caller")


def test_what_the_gate_holds_comes_out_of_no_route_without_the_scope_review(house, subtests):
    for method, path in ROUTES:
        with subtests.test(f"{method} {path}"), undone():
            held = Memory.objects.filter(pk__in=(1, 11)).order_by("pk")
            held.update(verdict=Verdict.HOLD, verdict_reason=f"it says {SECRET_WORD}")
            before = list(held.values())
            body = BODIES.get((method, path), {})
            body = {name: value for name, value in body.items() if name != "include_hold"} or None
            response = bearer("read", "write", "run").ask(method.upper(), address(path, 1), body)
            text = response.content.decode()
            assert f"is {SECRET_WORD} here" not in text.replace("it is zanzibar here", "")
            assert "it says" not in text
            assert list(held.values()) == before
            if "/memories/{" in path and not path.endswith("/approve"):
                assert problem(response) == (404, "memory_not_found")
