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
    Event,
    InjectionReceipt,
    LogEntry,
    ServiceCheck,
    Session,
    Status,
    Trigger,
)
from tests.factories import AgentFactory, CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory

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
    return [int(pk) for pk in re.findall(r'<th class="field-name"><a href="/admin/sessions_app/session/(\d+)/', html)]


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


def test_a_row_shows_status_with_its_reason_cost_turns_and_duration(signed_in):
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
    assert '<span class="badge badge-failed">failed</span>' in html
    assert "API error: the usage limit is reached." in html
    assert "$0.0312" in html
    assert "1 min 23 s" in html
    assert ">3 hours ago</time>" in html


def test_a_queued_session_says_why_it_waits(signed_in):
    SessionFactory(status=Status.QUEUED, hold_reason="Agent watch is busy with session 3.")
    assert "Agent watch is busy with session 3." in signed_in.get(LIST).content.decode()


def test_filters_and_search_narrow_the_list(signed_in):
    watch = AgentFactory(slug="watch")
    good = SessionFactory(agent=watch, tier=1, summary="All well", trigger=Trigger.SCHEDULED)
    bad = SessionFactory(agent=watch, tier=2, status=Status.FAILED, status_reason="No key", dry_run=True)
    old = SessionFactory(agent=None, tier=3, queued_at=timezone.now() - timedelta(days=40), trigger=Trigger.ALERT)
    assert listed(signed_in, "?status=failed") == [bad.pk]
    assert listed(signed_in, "?agent=none") == [old.pk]
    assert set(listed(signed_in, "?agent=watch")) == {good.pk, bad.pk}
    assert listed(signed_in, "?tier=3") == [old.pk]
    assert listed(signed_in, "?trigger=alert") == [old.pk]
    assert listed(signed_in, "?age=older") == [old.pk]
    assert listed(signed_in, "?dry_run=yes") == [bad.pk]
    assert listed(signed_in, f"?q=%23{old.pk}") == [old.pk]
    assert listed(signed_in, f"?q={good.pk}") == [good.pk]
    assert listed(signed_in, "?q=key") == [bad.pk]
    assert listed(signed_in, "?q=" + "9" * 30) == []
    assert listed(signed_in, "?status=nonsense") == []


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


# -- the page ----------------------------------------------------------------------------------------------------


def test_the_page_shows_what_it_was_told_what_was_left_out_and_what_came_of_it(signed_in):
    session = full(SessionFactory(prompt="You observe.", task="Look at the disk", summary="One **slow** service"))
    html = page(signed_in, session)
    for text in ("Told so", "Left out so", "beyond the budget of 2,000 tokens", "412 of 2,000 tokens", "You observe."):
        assert text in html
    assert "Look at the disk" in html
    assert "One <strong>slow</strong> service" in html
    assert Event.objects.first().message in html
    assert "restart jellyfin" in html
    assert "service-1" in html
    assert session.memories.first().observation in html
    assert "Line 2" in html
    assert re.search(r'<strong class="number">1</strong> over budget', html)
    assert "0</strong> held" not in html


def test_the_chain_of_an_escalation_is_linked_both_ways(signed_in):
    first = SessionFactory(tier=1)
    second = SessionFactory(tier=2, parent=first, trigger=Trigger.ESCALATION)
    third = SessionFactory(tier=3, parent=second, trigger=Trigger.ESCALATION)
    html = page(signed_in, second)
    assert html.index(url(first)) < html.index(f"#{second.pk}") < html.index(url(third))


def test_an_answer_is_shown_as_markdown_and_its_html_as_text(signed_in):
    html = page(signed_in, SessionFactory(response="## Found\n\n<script>alert(1)</script> [x](javascript:alert(1))"))
    assert "<h4>Found</h4>" in html
    assert "<script>alert(1)" not in html
    assert 'href="javascript:' not in html


@pytest.mark.parametrize("text", ["</pre><script>x</script>", "{{ 7|add:7 }}"])
def test_what_an_agent_wrote_anywhere_on_the_page_is_text(signed_in, text):
    session = SessionFactory(
        prompt=text, task=text, error=text, status_reason=text, hold_reason=text, structured={"x": text}, summary=text
    )
    LogEntry.objects.create(session=session, seq=1, at=timezone.now(), kind="tool_result", text=text, offset=0)
    EventFactory(session=session, message=text)
    html = page(signed_in, session)
    assert "<script>x" not in html
    assert ">14<" not in html


def test_the_log_is_paged_and_long_lines_are_folded(signed_in):
    session = SessionFactory()
    at = timezone.now()
    LogEntry.objects.bulk_create(
        LogEntry(session=session, seq=n, at=at, kind="text", text=f"Line {n}.", offset=n) for n in range(1, 452)
    )
    LogEntry.objects.filter(seq=2).update(text="First of many\n" + "more\n" * 40)
    first = page(signed_in, session)
    assert "Line 200." in first
    assert "Line 201." not in first
    assert "<summary>First of many</summary>" in first
    assert "?after=200#log" in first
    last = page(signed_in, session, "?after=400")
    assert "Line 401." in last
    assert "The next lines" not in last
    assert "Line 1." in page(signed_in, session, "?after=nonsense")


def test_the_page_costs_the_same_however_much_there_is(signed_in):
    def queries(rows: int) -> int:
        session = full(SessionFactory(), rows)
        with CaptureQueriesContext(connection) as captured:
            page(signed_in, session)
        return len(captured)

    queries(1)
    assert queries(5) == queries(40) < 30


def test_a_bare_session_has_a_page(signed_in):
    for status in Status.values:
        session = SessionFactory(agent=None, status=status)
        assert f"Session {session.pk}" in page(signed_in, session)


def test_a_session_that_does_not_exist_is_said_and_not_an_error(signed_in):
    for pk in ("999999", "9" * 40, "x"):
        assert signed_in.get(f"{LIST}{pk}/change/").status_code == 302


# -- run again, stop ---------------------------------------------------------------------------------------------


def test_run_again_asks_for_a_session_like_this_one_in_the_persons_name(signed_in):
    session = SessionFactory(tier=2, task="Look at the disk", trigger=Trigger.ALERT, dry_run=True)
    response = signed_in.post(f"{LIST}{session.pk}/run-again")
    made = Session.objects.exclude(pk=session.pk).get()
    assert response.headers["Location"] == url(made)
    assert (made.agent, made.tier, made.task, made.dry_run) == (session.agent, 2, "Look at the disk", True)
    assert (made.trigger, made.requested_by, made.status, made.parent) == ("manual", "operator", "queued", None)
    assert f"session {session.pk} was" in said(response)


def test_what_cannot_be_run_again_is_refused_in_words(signed_in, settings):
    settings.CLAUDEOPS_MAX_TIER = 1
    session = SessionFactory(tier=3)
    response = signed_in.post(f"{LIST}{session.pk}/run-again")
    assert response.headers["Location"] == url(session)
    assert "above the highest allowed tier" in said(response)
    assert Session.objects.count() == 1


def test_stop_ends_a_queued_session_and_tells_a_running_one(signed_in):
    queued, running = SessionFactory(status=Status.QUEUED), SessionFactory(status=Status.RUNNING)
    signed_in.post(f"{LIST}{queued.pk}/stop")
    signed_in.post(f"{LIST}{running.pk}/stop")
    queued.refresh_from_db()
    running.refresh_from_db()
    assert queued.status == Status.STOPPED
    assert (running.status, running.stop_requested_by) == (Status.RUNNING, "operator")
    assert "Told to stop by operator" in page(signed_in, running)


def test_stopping_what_has_ended_is_refused_in_words(signed_in):
    session = SessionFactory(status=Status.COMPLETED)
    assert "has already ended" in said(signed_in.post(f"{LIST}{session.pk}/stop"))


def test_the_lists_actions_do_the_same_for_several(signed_in):
    one, two, other = (SessionFactory(status=Status.QUEUED) for _ in range(3))
    sent = {"action": "stop_action", "index": "0", "_selected_action": [one.pk, two.pk]}
    signed_in.post(LIST, sent)
    assert set(Session.objects.filter(status=Status.STOPPED)) == {one, two}
    signed_in.post(LIST, sent | {"action": "run_again_action"})
    assert Session.objects.filter(trigger=Trigger.MANUAL, requested_by="operator", status=Status.QUEUED).count() == 2
    other.refresh_from_db()
    assert other.status == Status.QUEUED


def test_too_many_at_once_are_refused(signed_in):
    SessionFactory.create_batch(51, agent=None, status=Status.QUEUED)
    ids = list(Session.objects.values_list("pk", flat=True))
    response = signed_in.post(LIST, {"action": "stop_action", "index": "0", "_selected_action": ids})
    assert "At most 50" in said(response)
    assert not Session.objects.filter(status=Status.STOPPED).exists()


def test_a_link_cannot_start_or_stop_anything(signed_in):
    session = SessionFactory(status=Status.QUEUED)
    assert signed_in.get(f"{LIST}{session.pk}/stop").status_code == 405
    assert signed_in.get(f"{LIST}{session.pk}/run-again").status_code == 405


# -- a record ----------------------------------------------------------------------------------------------------


def test_a_session_is_never_added_or_edited(signed_in):
    session = SessionFactory(summary="As it was")
    assert signed_in.get(f"{LIST}add/").status_code == 403
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
    html = page(client, session)
    assert "/stop" not in html
    assert "/run-again" not in html
    assert client.post(f"{LIST}{session.pk}/stop").status_code == 403
    assert client.post(f"{LIST}{session.pk}/run-again").status_code == 403
    session.refresh_from_db()
    assert session.status == Status.QUEUED
