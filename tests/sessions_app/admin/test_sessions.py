"""Sessions in the admin: what ran and why it ended so, and asking for another run or for an end."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import MemoryChange
from sessions_app.models import (
    CooldownAction,
    InjectionReceipt,
    LogEntry,
    ServiceCheck,
    Session,
    Status,
    Trigger,
)
from tests.sessions_app.queue.support import wakeups
from tests.support.factories import (
    AgentFactory,
    CooldownActionFactory,
    EventFactory,
    MemoryFactory,
    ProjectFactory,
    SessionFactory,
)

LIST = "/admin/sessions_app/session/"


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def url(session: Session) -> str:
    return f"{LIST}{session.pk}/change/"


def page(client, session: Session, query: str = "") -> str:
    response = client.get(url(session) + query)
    assert response.status_code == 200
    return response.content.decode()


def listed(client, query: str = "") -> list[int]:
    html = client.get(LIST + query).content.decode()
    return [int(pk) for pk in re.findall(r'<th class="field-id"><a href="/sessions/(\d+)"', html)]


def said(response) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def full(session: Session, rows: int = 3) -> Session:
    """A session with everything that can hang on one."""
    at = timezone.now()
    for number in range(rows):
        EventFactory(session=session)
        CooldownActionFactory(session=session)
        ServiceCheck.objects.create(session=session, service=f"service-{number}", status="ok", healthy=True)
        memory = MemoryFactory(session=session)
        MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="created", session=session)
        SessionFactory(parent=session)
        LogEntry.objects.create(
            session=session, seq=number + 1, at=at, kind="text", text=f"Line {number}", offset=number
        )
    entry = {"id": 1, "uuid": "x", "service": None, "category": "timing", "confidence": 0.9, "observation": "Told so"}
    InjectionReceipt.objects.create(
        session=session,
        text="## Operational Memory",
        sha256="a" * 64,
        budget=2000,
        tokens=412,
        included=[entry | {"id": number, "reason": ""} for number in range(rows)],
        left_out=[entry | {"observation": "Left out so", "reason": "beyond the budget of 2,000 tokens"}],
        counts={"included": rows, "over_budget": 1, "held": 0},
    )
    return session


# -- the list ----------------------------------------------------------------------------------------------------


def test_a_row_shows_status_with_its_reason_cost_and_turns(signed_in):
    SessionFactory(
        agent=AgentFactory(slug="watch"),
        status=Status.FAILED,
        status_reason="API error: the usage limit is reached.",
        cost_usd=Decimal("0.0312"),
        num_turns=7,
        duration_ms=83_000,
        started_at=timezone.now() - timedelta(hours=3),
    )
    html = signed_in.get(LIST).content.decode()
    assert "watch" in html
    assert '<td class="field-status">failed</td>' in html
    assert "API error: the usage limit is reached." in html
    assert "0.031200" in html
    assert '<td class="field-num_turns">7</td>' in html


def test_filters_and_search_narrow_the_list(signed_in):
    watch = AgentFactory(slug="watch")
    good = SessionFactory(agent=watch, tier=1, summary="All well", trigger=Trigger.SCHEDULED)
    bad = SessionFactory(agent=watch, tier=2, status=Status.FAILED, status_reason="No key", dry_run=True)
    old = SessionFactory(agent=None, tier=3, queued_at=timezone.now() - timedelta(days=40), trigger=Trigger.ALERT)
    assert listed(signed_in, "?status__exact=failed") == [bad.pk]
    assert listed(signed_in, "?agent__isnull=True") == [old.pk]
    assert set(listed(signed_in, f"?agent__id__exact={watch.pk}")) == {good.pk, bad.pk}
    assert listed(signed_in, "?tier=3") == [old.pk]
    assert listed(signed_in, "?trigger__exact=alert") == [old.pk]
    assert listed(signed_in, "?age=older") == [old.pk]
    assert listed(signed_in, "?dry_run__exact=1") == [bad.pk]
    assert listed(signed_in, f"?q=%23{old.pk}") == [old.pk]
    assert listed(signed_in, f"?q={good.pk}") == [good.pk]
    assert listed(signed_in, "?q=key") == [bad.pk]
    assert listed(signed_in, "?q=" + "9" * 30) == []
    assert listed(signed_in, "?status__exact=nonsense") == []


def test_the_list_costs_the_same_with_twice_the_rows_and_reads_no_prompt(signed_in):
    def queries(rows: int) -> list[str]:
        for _ in range(rows):
            SessionFactory(prompt="A long prompt", response="A long answer")
        with CaptureQueriesContext(connection) as captured:
            assert signed_in.get(LIST).status_code == 200
        return [query["sql"] for query in captured]

    queries(1)
    few, many = queries(9), queries(10)
    assert len(few) == len(many)
    assert not [sql for sql in many if '"sessions"."prompt"' in sql or '"sessions"."response"' in sql]


def test_every_session_has_a_page_that_links_to_the_dashboards(signed_in):
    for status in Status.values:
        session = SessionFactory(agent=None, status=status)
        assert f'<a href="/sessions/{session.pk}" class="viewsitelink">' in page(signed_in, session)


def test_a_session_that_does_not_exist_is_said_and_not_an_error(signed_in):
    for pk in ("999999", "x"):
        assert signed_in.get(f"{LIST}{pk}/change/").status_code == 302


# -- run again, stop ---------------------------------------------------------------------------------------------


def act(client, name: str, *sessions: Session):
    """An action of the list."""
    return client.post(LIST, {"action": name, "index": "0", "_selected_action": [row.pk for row in sessions]})


def test_run_again_asks_for_a_session_like_this_one_in_the_persons_name(signed_in):
    session = SessionFactory(agent__tier=2, tier=2, task="Look at the disk", trigger=Trigger.ALERT, dry_run=True)
    response = act(signed_in, "run_again", session)
    made = Session.objects.exclude(pk=session.pk).get()
    assert (made.agent, made.tier, made.task, made.dry_run) == (session.agent, 2, "Look at the disk", True)
    assert (made.trigger, made.requested_by, made.status, made.parent) == ("manual", "operator", "queued", None)
    assert f'href="/sessions/{made.pk}"' in said(response)


def test_what_cannot_be_run_again_is_refused_in_words(signed_in, settings):
    settings.CLAUDEOPS_MAX_TIER = 1
    session = SessionFactory(tier=3)
    response = act(signed_in, "run_again", session)
    assert "above the highest allowed tier" in said(response)
    assert Session.objects.count() == 1


def test_stopping_what_has_ended_is_refused_in_words(signed_in):
    session = SessionFactory(status=Status.COMPLETED)
    assert "has already ended" in said(act(signed_in, "stop", session))


def test_the_lists_actions_do_the_same_for_several(signed_in):
    one, two, other = (SessionFactory(status=Status.QUEUED) for _ in range(3))
    sent = {"action": "stop", "index": "0", "_selected_action": [one.pk, two.pk]}
    signed_in.post(LIST, sent)
    assert set(Session.objects.filter(status=Status.STOPPED)) == {one, two}
    signed_in.post(LIST, sent | {"action": "run_again"})
    assert Session.objects.filter(trigger=Trigger.MANUAL, requested_by="operator", status=Status.QUEUED).count() == 2
    other.refresh_from_db()
    assert other.status == Status.QUEUED


def test_too_many_at_once_are_refused(signed_in):
    SessionFactory.create_batch(51, agent=None, status=Status.QUEUED)
    ids = list(Session.objects.values_list("pk", flat=True))
    response = signed_in.post(LIST, {"action": "stop", "index": "0", "_selected_action": ids})
    assert "At most 50" in said(response)
    assert not Session.objects.filter(status=Status.STOPPED).exists()


# -- retry, continue ---------------------------------------------------------------------------------------------


@pytest.fixture
def ended():
    """Two failed sessions with a conversation to resume, and one that runs."""
    values = {"agent": None, "tier": 1, "cli_session_id": "0b8d", "started_at": timezone.now()}
    failed = [SessionFactory(status=Status.FAILED, task=f"Fix {name}", **values) for name in ("one", "two")]
    return [*failed, SessionFactory(status=Status.RUNNING, **values)]


@pytest.mark.parametrize(("action", "kind"), [("retry", "retry"), ("continue_", "continue")])
def test_the_operators_words_are_asked_for_on_a_page_between_and_arrive(signed_in, ended, action, kind):
    asked = act(signed_in, action, *ended)
    html = asked.content.decode()
    assert asked.status_code == 200
    assert 'name="note"' in html
    assert html.count('name="_selected_action"') == 3
    assert "left out: it has not ended yet" in html
    assert Session.objects.count() == 3
    answer = {"action": action, "index": "0", "_selected_action": [row.pk for row in ended], "noted": "1"}
    response = signed_in.post(LIST, answer | {"note": "Look at the <cookie>."})
    made = Session.objects.filter(follows_as=kind).order_by("parent_id")
    assert [one.parent for one in made] == ended[:2]
    assert {one.brief["note"] for one in made} == {"Look at the <cookie>."}
    assert "it has not ended yet" in said(response)
    signed_in.post(LIST, answer | {"note": "Look at the <cookie>."})
    assert Session.objects.count() == 5


def test_without_words_a_session_is_retried_all_the_same(signed_in, ended):
    signed_in.post(LIST, {"action": "retry", "index": "0", "_selected_action": [ended[0].pk], "noted": "1", "note": ""})
    assert Session.objects.get(parent=ended[0]).brief.get("note", "") == ""


def test_words_that_are_too_long_are_refused_at_their_field_and_nothing_is_queued(signed_in, ended):
    sent = {"action": "retry", "index": "0", "_selected_action": [ended[0].pk], "noted": "1", "note": "x" * 100_000}
    response = signed_in.post(LIST, sent)
    assert response.status_code == 422
    assert "at most" in response.context["form"].errors["note"][0]
    assert Session.objects.count() == 3


# -- queue one with a brief --------------------------------------------------------------------------------------

BRIEF = {
    "prompt": "Fix the login.",
    "title": "Login",
    "task_id": "T-7",
    "write_scope": "src/login/**\nsrc/session.py",
    "excluded_paths": "secrets/**",
    "read_first": "docs/login.md",
    "prohibited": "Push to main",
}


def test_the_add_page_queues_a_session_with_its_brief(signed_in):
    agent, project = AgentFactory(slug="mender", tier=2), ProjectFactory(slug="web")
    assert f'href="{LIST}add/"' in signed_in.get(LIST).content.decode()
    html = signed_in.get(f"{LIST}add/").content.decode()
    assert all(f'name="{name}"' in html for name in (*BRIEF, "agent", "tier", "dry_run", "project"))
    response = signed_in.post(f"{LIST}add/", {**BRIEF, "agent": "mender", "tier": "2", "project": "web"})
    made = Session.objects.get()
    assert response.headers["Location"] == LIST
    assert (made.agent, made.project, made.tier, made.task) == (agent, project, 2, "Fix the login.")
    assert (made.status, made.trigger, made.requested_by) == ("queued", "manual", "operator")
    assert made.brief["write_scope"] == ["src/login/**", "src/session.py"]
    assert (made.brief["title"], made.brief["task_id"]) == ("Login", "T-7")
    assert (made.brief["excluded_paths"], made.brief["read_first"]) == (["secrets/**"], ["docs/login.md"])
    assert wakeups() == [("sessions", made.pk)]
    assert f"Session {made.pk}" in said(response)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"agent": "nobody"}, "agent"),
        ({"agent": "watch", "tier": "3"}, "tier"),
        ({"title": "x" * 1000}, "title"),
        ({"write_scope": "/etc/**"}, "write_scope"),
        ({"project": "nowhere"}, "project"),
    ],
)
def test_what_cannot_be_queued_is_refused_at_its_field_and_what_was_typed_stays(signed_in, given, field):
    AgentFactory(slug="watch", tier=1)
    response = signed_in.post(f"{LIST}add/", BRIEF | given)
    assert response.status_code == 422
    assert list(response.context["form"].errors) == [field]
    assert "Fix the login." in response.content.decode()
    assert not Session.objects.exists()


def test_only_who_may_run_sessions_gets_the_add_page(client, django_user_model):
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    rights = Permission.objects.filter(content_type__app_label="sessions_app")
    viewer.user_permissions.set(rights.exclude(codename="run_session"))
    client.force_login(viewer)
    assert f'href="{LIST}add/"' not in client.get(LIST).content.decode()
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}add/", BRIEF).status_code == 403
    assert not Session.objects.exists()


# -- a record ----------------------------------------------------------------------------------------------------


def test_a_session_is_never_edited(signed_in):
    session = SessionFactory(summary="As it was")
    assert signed_in.post(url(session), {"summary": "Better", "status": "completed"}).status_code == 403
    session.refresh_from_db()
    assert session.summary == "As it was"


def test_only_a_superuser_deletes_and_only_what_has_ended(signed_in, client, django_user_model):
    running, ended = SessionFactory(status=Status.RUNNING), full(SessionFactory())
    memory = ended.memories.first()
    assert signed_in.post(f"{LIST}{running.pk}/delete/", {"post": "yes"}).status_code == 403
    shown = signed_in.get(f"{LIST}{ended.pk}/delete/").content.decode()
    assert "3 log entries" in shown
    assert "3 events" in shown
    signed_in.post(f"{LIST}{ended.pk}/delete/", {"post": "yes"})
    assert not Session.objects.filter(pk=ended.pk).exists()
    assert not LogEntry.objects.exists()
    memory.refresh_from_db()
    assert memory.session is None
    assert CooldownAction.objects.filter(session=None).count() == 3

    staff = django_user_model.objects.create_user("staff", is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(content_type__app_label="sessions_app"))
    client.force_login(staff)
    other = SessionFactory()
    assert client.post(f"{LIST}{other.pk}/delete/", {"post": "yes"}).status_code == 403


def test_who_may_only_look_is_offered_nothing_and_refused(client, django_user_model):
    viewer = django_user_model.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_session", content_type__app_label="sessions_app"))
    client.force_login(viewer)
    session = SessionFactory(status=Status.QUEUED)
    assert 'name="action"' not in client.get(LIST).content.decode()
    for name in ("stop", "run_again"):
        act(client, name, session)
    session.refresh_from_db()
    assert session.status == Status.QUEUED
    assert Session.objects.count() == 1
