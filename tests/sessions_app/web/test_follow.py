"""Retry and continue on the page of a session, by the API and in the admin; the brief in the form of a run."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.utils import timezone

from sessions_app.models import Session, Status, Trigger
from tests.sessions_app.people import person
from tests.support.api_callers import bearer, problem
from tests.support.factories import AgentFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def old():
    return SessionFactory(status=Status.FAILED, cli_session_id="0b8d", started_at=timezone.now(), task="Look.")


@pytest.fixture
def operators(client):
    client.force_login(person("operator"))
    return client


def made_of(old):
    return Session.objects.get(parent=old)


def said(response):
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


@pytest.mark.parametrize("verb", ["retry", "continue"])
def test_the_form_makes_the_session_and_leads_to_it(operators, old, verb):
    page = operators.get(f"/sessions/{old.pk}").content.decode()
    assert f"/sessions/{old.pk}/{verb}" in page
    for _ in range(2):  # pressed twice
        response = operators.post(f"/sessions/{old.pk}/{verb}", {"note": "Look at <b>caddy</b>."})
        assert response.headers["Location"] == f"/sessions/{made_of(old).pk}"
    made = made_of(old)
    assert (made.follows_as, made.brief["note"], made.requested_by) == (verb, "Look at <b>caddy</b>.", "one-operator")


def test_what_cannot_be_continued_says_so_on_the_page_and_when_asked(operators, old):
    Session.objects.filter(pk=old.pk).update(runner="replay", replay_stream="a.jsonl")
    page = operators.get(f"/sessions/{old.pk}").content.decode()
    assert f"/sessions/{old.pk}/continue" not in page
    assert "It cannot be continued: it played a recorded stream" in page
    response = operators.post(f"/sessions/{old.pk}/continue")
    assert "is not continued" in said(response)
    assert not Session.objects.filter(parent=old).exists()


def test_words_that_are_too_long_are_refused(operators, old):
    response = operators.post(f"/sessions/{old.pk}/retry", {"note": "x" * 20_001})
    assert "is not retried" in said(response)
    assert not Session.objects.filter(parent=old).exists()


def test_a_viewer_has_no_form_and_may_not(client, old):
    client.force_login(person("viewer"))
    assert "retry" not in client.get(f"/sessions/{old.pk}").content.decode()
    assert client.post(f"/sessions/{old.pk}/retry").status_code == 403


@pytest.mark.parametrize("verb", ["retry", "continue"])
def test_by_the_api(old, verb):
    caller = bearer("run")
    answer = caller.post(f"/api/sessions/{old.pk}/{verb}", {"note": "Again."})
    assert answer.status_code == 202
    made = made_of(old)
    assert (answer.json()["id"], made.trigger, made.brief["note"]) == (made.pk, Trigger.API, "Again.")
    refused = caller.post(f"/api/sessions/{old.pk}/{verb}", {"note": "Otherwise."})
    assert problem(refused) == (422, "invalid_session")


def test_the_api_takes_the_brief_and_names_a_bad_glob():
    AgentFactory(slug="mender")
    caller = bearer("run")
    given = {"agent": "mender", "prompt": "Look.", "title": "Login", "write_scope": ["src/**"], "task_id": "SHOP-1"}
    assert caller.post("/api/sessions", given).status_code == 202
    assert Session.objects.get().brief == {"title": "Login", "write_scope": ["src/**"], "task_id": "SHOP-1"}
    answer = caller.post("/api/sessions", {**given, "write_scope": ["/etc/**"]})
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (422, ["write_scope"])
    assert Session.objects.count() == 1


def test_the_form_of_a_run_takes_the_brief_and_refuses_a_bad_glob_at_its_field(operators):
    ProjectFactory(slug="shop")
    given = {"prompt": "Look.", "project": "shop", "title": "Login", "write_scope": "src/**\n\n docs/*.md "}
    assert operators.post("/sessions", given).status_code == 302
    session = Session.objects.get()
    assert (session.project.slug, session.brief) == (
        "shop",
        {"title": "Login", "write_scope": ["src/**", "docs/*.md"]},
    )
    response = operators.post("/sessions", {**given, "excluded_paths": "../x"})
    assert response.status_code == 422
    assert list(response.context["form"].errors) == ["excluded_paths"]
    assert Session.objects.count() == 1
