"""The front page, signing in, and the pages that say no: what a person meets before the admin."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from claudeops import overview
from memories import listing
from memories.models import MemoryChange
from sessions_app.models import Agent, LogEntry, Session, Status, Trigger, WorkerHeartbeat
from sessions_app.queue import wakeups
from tests.factories import AgentFactory, CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory
from tests.sessions_app.people import person

FRAGMENT = "/overview/fragment"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def front(client: Client) -> str:
    response = client.get("/")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def figure(html: str, name: str) -> str:
    """The number on one of the tiles."""
    found = re.search(rf'id="figure-{name}" href="([^"]+)"><span class="figure-value">([^<]+)</span>', html)
    assert found, name
    return found.group(2)


def piece(html: str, name: str) -> str:
    """One of the parts of the page."""
    found = re.search(rf'<div id="piece-{name}"[^>]*> ?<section .*?</section>', html)
    assert found, name
    return found.group()


# -- the overview ------------------------------------------------------------------------------------------------


def test_it_counts_what_runs_waits_is_known_and_was_reported(signed_in):
    now = timezone.now()
    SessionFactory(status=Status.RUNNING, started_at=now, cost_usd=Decimal("0.25"))
    SessionFactory.create_batch(2, status=Status.QUEUED, hold_reason="Agent watch is busy with session 1.")
    SessionFactory(status=Status.COMPLETED, ended_at=now, cost_usd=Decimal("1.25"))
    SessionFactory(status=Status.COMPLETED, ended_at=now - timedelta(days=2), cost_usd=Decimal("9"))
    MemoryFactory.create_batch(3)
    MemoryFactory(active=False)
    MemoryFactory(verdict="hold")
    EventFactory(level="critical")
    EventFactory(level="warning", created_at=now - timedelta(hours=30))
    CooldownActionFactory.create_batch(2, service="caddy")
    html = front(signed_in)
    expected = {
        "running": "1",
        "queued": "2",
        "today": "$1.50",
        "cost": "$10.25",
        "cooldowns": "1",
        "active": "3",
        "inactive": "1",
        "held": "1",
        "critical": "1",
        "warning": "0",
        "info": "0",
    }
    assert {name: figure(html, name) for name in expected} == expected
    assert "today of $20.00" in html
    assert html.count("Agent watch is busy with session 1.") == 2


def test_it_says_what_failed_last_and_why_newest_first(signed_in):
    now = timezone.now()
    for hours, status in ((3, Status.TIMED_OUT), (1, Status.FAILED), (2, Status.LOST)):
        at = now - timedelta(hours=hours)
        SessionFactory(status=status, status_reason=f"Because of {status}.", queued_at=at, ended_at=at)
    SessionFactory(status=Status.STOPPED, status_reason="Stopped by operator.", ended_at=now)
    html = piece(front(signed_in), "failed")
    places = [html.index(f"Because of {status}.") for status in ("failed", "lost", "timed_out")]
    assert places == sorted(places)
    assert "Stopped by operator." not in html


def test_it_says_who_runs_next(signed_in):
    now = timezone.now()
    AgentFactory(slug="later", schedule_kind="interval", next_run_at=now + timedelta(hours=5, minutes=1))
    AgentFactory(slug="soon", schedule_kind="interval", next_run_at=now + timedelta(minutes=9, seconds=30))
    AgentFactory(slug="never", schedule_kind="interval", enabled=False, next_run_at=now)
    AgentFactory(slug="late", schedule_kind="interval", next_run_at=now - timedelta(minutes=20, seconds=5))
    html = front(signed_in)
    assert html.index(">late</a>") < html.index(">soon</a>") < html.index(">later</a>")
    assert re.search(r"due <time[^>]+>20 minutes ago</time>", html)
    assert ">in 9 minutes</time>" in html
    assert ">never</a>" not in html


def test_an_empty_house_says_that_nothing_is_there_and_what_to_do(signed_in):
    html = front(signed_in)
    for words in (
        "Nothing is running.",
        "Nothing waits.",
        "No session has failed.",
        "There is no agent yet.",
        "Nothing has happened yet.",
        "Nobody serves this queue. Start <code>manage.py runworker</code> (or <code>up</code>).",
    ):
        assert words in html
    assert 'href="/admin/sessions_app/agent/add/"' in html


def test_a_viewer_of_an_empty_house_is_offered_nothing_that_is_refused(client, db):
    client.force_login(person("viewer"))
    html = front(client)
    assert "There is no agent yet." in html
    for url in {unescape(url) for url in re.findall(r'<a[^>]+href="(/[^"]*)"', html)}:
        assert client.get(url).status_code == 200, url
    assert "agent/add" not in html
    assert "Run a session" not in html


def test_what_runs_is_shown_with_its_tier_and_the_last_line_it_wrote(signed_in):
    session = SessionFactory(status=Status.RUNNING, tier=2, started_at=timezone.now() - timedelta(minutes=3))
    for seq, text in enumerate(("The first line", "docker ps", "Up 3 hours <healthy>"), start=1):
        LogEntry.objects.create(session=session, seq=seq, at=timezone.now(), kind="text", text=text, offset=seq)
    html = front(signed_in)
    assert re.search(r"tier 2 · since <time[^>]+>3 minutes ago</time>", html)
    assert "Up 3 hours &lt;healthy&gt;" in html
    assert "docker ps" not in html


def test_what_holds_the_next_run_back_is_said(signed_in, settings):
    soon = timezone.now() + timedelta(minutes=2)
    every = {"schedule_kind": "interval", "next_run_at": soon}
    busy, waits = AgentFactory(slug="busy", **every), AgentFactory(slug="waits", **every)
    AgentFactory(slug="late", schedule_kind="interval", next_run_at=timezone.now() - timedelta(minutes=9))
    AgentFactory(slug="broken", schedule_kind="cron", cron="0 0 31 2 *", next_run_at=None)
    running = SessionFactory(agent=busy, status=Status.RUNNING)
    queued = SessionFactory(agent=waits, status=Status.QUEUED, trigger="scheduled")
    html = front(signed_in)
    assert f"Agent busy is busy with session {running.pk};" in html
    assert f"Session {queued.pk} of this schedule still waits; a further run joins it." in html
    assert "No worker looks at the schedules. Start <code>manage.py runworker</code>" in html
    assert "It never runs: " in html
    settings.CLAUDEOPS_DAILY_BUDGET_USD = 1.0
    free = AgentFactory(slug="free", **every)
    SessionFactory(ended_at=timezone.now(), cost_usd=Decimal("1.50"))
    html = front(signed_in)
    assert "The day&#x27;s budget is spent" in html[html.index(f'id="next-{free.pk}"') :]


def test_the_last_seven_days_are_summed_without_imported_logs(signed_in):
    now = timezone.now()
    SessionFactory(ended_at=now - timedelta(days=6), cost_usd=Decimal("2.50"), num_turns=40)
    SessionFactory(ended_at=now, cost_usd=Decimal("1"), num_turns=2)
    SessionFactory(ended_at=now - timedelta(days=8), cost_usd=Decimal("9"), num_turns=500)
    SessionFactory(ended_at=now, cost_usd=Decimal("9"), num_turns=500, trigger="import")
    html = front(signed_in)
    assert (figure(html, "cost"), figure(html, "turns")) == ("$3.50", "42")


LISTED = {
    **dict.fromkeys(("running", "queued"), r'id="sessions-count">\s*([\d,+]+) session'),
    **dict.fromkeys(("active", "held", "inactive"), r'id="memories-count">\s*([\d,+]+) memor'),
    **dict.fromkeys(("critical", "warning", "info"), r'id="events-count">\s*([\d,+]+) event'),
    **dict.fromkeys(("today", "cost"), r'id="sessions-cost">([^<]+)<'),
    "turns": r'id="sessions-turns">([^<]+)<',
    "cooldowns": r'id="cooldowns-count">([^<]+)<',
}
"""What the list that a figure leads to says of itself."""


@pytest.fixture
def lived_in():
    """A house in which every figure counts something, and something beside it that it must not count."""
    now = timezone.now()
    SessionFactory(status=Status.RUNNING, cost_usd=Decimal("0.11"), num_turns=3)
    SessionFactory.create_batch(2, status=Status.QUEUED)
    SessionFactory(status=Status.FAILED, ended_at=now, cost_usd=Decimal("1.2345"), num_turns=1200)
    SessionFactory(ended_at=now - timedelta(days=3), queued_at=now - timedelta(days=12), cost_usd=Decimal("3.1"))
    SessionFactory(ended_at=now - timedelta(days=9), cost_usd=Decimal("50"), num_turns=70)
    SessionFactory(ended_at=now, trigger=Trigger.IMPORT, cost_usd=Decimal("70"), num_turns=9)
    MemoryFactory.create_batch(4)
    MemoryFactory.create_batch(3, active=False)
    MemoryFactory(verdict="hold")
    MemoryFactory(verdict="hold", active=False)
    for n, level in enumerate(("info", "warning", "critical"), start=1):
        EventFactory.create_batch(n, level=level, session=None)
        EventFactory(level=level, created_at=now - timedelta(days=3))
    for service in ("caddy", "jellyfin"):
        CooldownActionFactory.create_batch(2, service=service)
    CooldownActionFactory(service="jellyfin", action="redeployment")
    CooldownActionFactory(service="paperless")


@pytest.mark.parametrize("name", LISTED)
def test_a_figure_is_what_the_list_it_leads_to_counts(signed_in, lived_in, name):
    html = front(signed_in)
    link = re.search(rf'id="figure-{name}" href="([^"]+)"', html)
    assert link
    listed = signed_in.get(unescape(link.group(1))).content.decode()
    said = re.search(LISTED[name], listed)
    assert said, listed
    assert figure(html, name) == said.group(1)
    assert figure(html, name) not in ("0", "$0.00")


def test_every_figure_is_held_to_its_list_and_every_link_leads_somewhere(signed_in, lived_in):
    html = front(signed_in)
    assert set(re.findall(r'id="figure-(\w+)"', html)) == set(LISTED)
    for url in {unescape(url) for url in re.findall(r'<a[^>]+href="(/[^"]*)"', html)}:
        assert signed_in.get(url).status_code == 200, url


def test_a_count_beyond_what_is_counted_is_the_same_in_the_list(signed_in, monkeypatch):
    for module in (overview, listing):
        monkeypatch.setattr(module, "CAP", 2)
    MemoryFactory.create_batch(4)
    html = front(signed_in)
    assert figure(html, "active") == "2+"
    assert re.search(LISTED["active"], signed_in.get("/memories?status=active").content.decode())[1] == "2+"


def test_its_queries_are_the_same_with_twice_the_rows_and_none_counts_without_a_limit(signed_in):
    def queries(rows: int) -> list[str]:
        for _ in range(rows):
            for status in Status.values:
                SessionFactory(status=status, agent=AgentFactory(schedule_kind="interval", next_run_at=timezone.now()))
            MemoryChange.objects.create(memory=MemoryFactory(), kind="created")
            EventFactory()
            CooldownActionFactory.create_batch(2, service=f"service-{Session.objects.count()}")
            WorkerHeartbeat.objects.create(host=f"host-{Session.objects.count()}", cluster="default", pid=1)
        with CaptureQueriesContext(connection) as captured:
            front(signed_in)
        return [query["sql"] for query in captured]

    queries(1)
    few, many = queries(9), queries(10)
    assert len(few) == len(many) < 50
    for table in ("sessions", "memories", "events"):
        counting = [sql for sql in many if "COUNT(" in sql and f'FROM "{table}"' in sql]
        assert counting
        assert all("LIMIT" in sql for sql in counting), counting


def test_without_a_daily_budget_it_says_that_there_is_no_limit(signed_in, settings):
    settings.CLAUDEOPS_DAILY_BUDGET_USD = 0
    assert "today, no limit" in front(signed_in)


def test_an_imported_session_costs_nothing_today(signed_in):
    SessionFactory(trigger=Trigger.IMPORT, ended_at=timezone.now(), cost_usd=Decimal("5"))
    assert figure(front(signed_in), "today") == "$0.00"


def test_the_demo_is_marked_on_every_page(signed_in, settings):
    assert "demo-banner" not in front(signed_in)
    settings.CLAUDEOPS_DEMO = True
    for url in ("/", "/admin/", "/admin/memories/memory/"):
        assert b"demo-banner" in signed_in.get(url).content


# -- the fragment ------------------------------------------------------------------------------------------------


def seen(html: str) -> str:
    found = re.search(r'hx-get="/overview/fragment\?seen=([^"]+)"', html)
    assert found
    return found.group(1)


def poll(client: Client, token: str) -> Any:
    return client.get(f"{FRAGMENT}?seen={token}", headers=HTMX)


def pieces(html: str) -> set[str]:
    """The parts of the page that an answer brings anew."""
    return set(re.findall(r'<div id="piece-(\w+)"[^>]* hx-swap-oob="true"', html))


@pytest.fixture
def still(monkeypatch):
    """A clock that stands at half past: what time alone moves is not what these tests are about."""
    at = timezone.now().replace(second=30, microsecond=0)
    monkeypatch.setattr(timezone, "now", lambda: at)
    return at


def test_the_page_asks_for_the_fragment_and_gets_nothing_while_nothing_changes(signed_in, still):
    EventFactory()
    first = seen(front(signed_in))
    response = poll(signed_in, first)
    assert (response.status_code, response.content) == (204, b"")
    memory = MemoryFactory()
    MemoryChange.objects.create(memory=memory, kind="created")
    response = poll(signed_in, first)
    assert response.status_code == 200
    html = response.content.decode()
    assert "<html" not in html
    assert seen(html) != first
    assert pieces(html) == {"figures"}
    assert figure(" ".join(html.split()), "active") == "1"
    assert poll(signed_in, seen(html)).status_code == 204


def test_an_unchanged_poll_reads_and_counts_no_list(signed_in, still):
    EventFactory()
    SessionFactory(status=Status.RUNNING)
    token = seen(front(signed_in))
    with CaptureQueriesContext(connection) as captured:
        assert poll(signed_in, token).status_code == 204
    assert len(captured) <= 11
    assert not any("memories" in query["sql"] for query in captured)


@pytest.mark.parametrize(
    ("what", "brings"),
    [
        ("claimed", {"figures", "running", "queued", "next"}),
        ("said", {"running"}),
        ("failed", {"figures", "running", "failed", "next"}),
        ("held", {"queued"}),
        ("beat", set()),
        ("silent", {"health"}),
        ("scheduled", {"next"}),
        ("reported", {"figures"}),
        ("restarted", {"figures"}),
        ("waiting", {"health"}),
    ],
)
def test_a_change_brings_the_parts_that_show_it_and_no_others(signed_in, still, what, brings):
    minute = timedelta(minutes=1)
    agent = AgentFactory(schedule_kind="interval", next_run_at=still + minute)
    runs = SessionFactory(agent=agent, status=Status.QUEUED, queued_at=still - minute)
    if what in ("said", "failed"):
        Session.objects.filter(pk=runs.pk).update(status=Status.RUNNING, started_at=still - minute)
    worker = WorkerHeartbeat.objects.create(host="nuc-1", cluster="default", pid=1, beat_at=still)
    CooldownActionFactory(session=None, service="caddy")
    EventFactory(session=None)
    token = seen(front(signed_in))
    if what == "claimed":
        Session.objects.filter(pk=runs.pk).update(status=Status.RUNNING, started_at=still, heartbeat_at=still)
    elif what == "said":
        LogEntry.objects.create(session=runs, seq=1, at=still, kind="text", text="A line", offset=0)
        Session.objects.filter(pk=runs.pk).update(ingest_offset=10)
    elif what == "failed":
        Session.objects.filter(pk=runs.pk).update(status=Status.FAILED, ended_at=still, status_reason="Broken.")
    elif what == "held":
        Session.objects.filter(pk=runs.pk).update(hold_reason="It is Sunday.")
    elif what in ("beat", "silent"):
        WorkerHeartbeat.objects.filter(pk=worker.pk).update(
            beat_at=still - timedelta(seconds=15 if what == "beat" else 90)
        )
    elif what == "scheduled":
        Agent.objects.filter(pk=agent.pk).update(next_run_at=still + 5 * minute)
    elif what == "reported":
        EventFactory(session=None, level="critical")
    elif what == "restarted":
        CooldownActionFactory(session=None, service="caddy")
    elif what == "waiting":
        wakeups.send_reap("nuc-1")
        OrmQ.objects.update(lock=still - minute)
    response = poll(signed_in, token)
    if not brings:
        assert response.status_code == 204
        return
    html = response.content.decode()
    assert pieces(html) >= brings
    assert pieces(html) - brings <= {"health"}, "running sessions are followed, or not"


def test_once_a_minute_all_is_looked_at_anew(signed_in, still, monkeypatch):
    EventFactory(created_at=still - timedelta(hours=24) + timedelta(seconds=20), session=None)
    html = front(signed_in)
    assert figure(html, "info") == "1"
    monkeypatch.setattr(timezone, "now", lambda: still + timedelta(seconds=29))
    assert poll(signed_in, seen(html)).status_code == 204
    monkeypatch.setattr(timezone, "now", lambda: still + timedelta(seconds=30))
    answer = poll(signed_in, seen(html)).content.decode()
    assert figure(" ".join(answer.split()), "info") == "0"


def test_a_fragment_asked_for_without_a_word_of_what_is_shown_is_all_of_it(signed_in, still):
    EventFactory()
    response = signed_in.get(FRAGMENT, headers=HTMX)
    assert (response["HX-Retarget"], response["HX-Reswap"]) == ("#overview", "outerHTML")
    assert " ".join(response.content.decode().split()) in front(signed_in)
    for nonsense in ("x", "-" * 8, "%00", "a-b-c-d-e-f-g-h", "9" * 5000):
        assert poll(signed_in, nonsense).status_code == 200


def test_a_signed_out_fragment_is_403_and_never_a_sign_in_page(client, db):
    for url in ("/", "/feed"):
        assert client.get(url).headers["Location"] == f"/login?next={url}"
    response = client.get(FRAGMENT, headers=HTMX)
    assert response.status_code == 403
    assert b"<form" not in response.content
    assert b"Reload the page to sign in" in response.content


def test_nothing_here_is_kept_by_a_cache_or_changed_by_a_post(signed_in):
    assert "no-store" in signed_in.get("/").headers["Cache-Control"]
    assert "no-store" in signed_in.get(FRAGMENT).headers["Cache-Control"]
    assert signed_in.post("/").status_code == 405


# -- signing in and out ------------------------------------------------------------------------------------------


def test_a_signed_out_browser_is_sent_to_sign_in_and_back_to_where_it_wanted(client, operator):
    assert client.get("/admin/memories/memory/").headers["Location"] == "/login?next=/admin/memories/memory/"
    response = client.post(
        "/login", {"username": "operator", "password": "a long password", "next": "/admin/memories/memory/"}
    )
    assert response.headers["Location"] == "/admin/memories/memory/"
    assert client.get("/").status_code == 200


def test_a_wrong_password_is_said_without_saying_which_part_was_wrong(client, operator):
    response = client.post("/login", {"username": "operator", "password": "wrong"})
    assert response.status_code == 200
    html = response.content.decode()
    assert 'role="alert"' in html
    assert "correct username and password" in html
    assert 'value="operator"' in html


@pytest.mark.parametrize(
    "after", ["/login", "/login?next=/login", "//evil.example", "https://evil.example/", "javascript:x"]
)
def test_signing_in_never_leads_in_a_circle_or_to_another_house(client, operator, after):
    response = client.post("/login", {"username": "operator", "password": "a long password", "next": after})
    assert response.headers["Location"] == "/"
    assert client.get("/login", {"next": after}).headers["Location"] == "/"


def test_the_admins_own_sign_in_leads_to_the_one_there_is(client, operator):
    assert client.get("/admin/login/?next=/admin/").headers["Location"] == "/login?next=/admin/"
    assert client.post("/admin/login/", {"username": "operator"}).headers["Location"] == "/login?next=/admin/"
    client.force_login(operator)
    assert client.get("/admin/login/").headers["Location"] == "/admin/"


def test_signing_out_is_a_post_and_leads_to_the_sign_in_page(signed_in):
    assert signed_in.get("/logout").status_code == 405
    assert signed_in.post("/logout").headers["Location"] == "/login"
    assert signed_in.get("/").status_code == 302


@pytest.mark.parametrize("url", ["/", "/admin/", "/admin/memories/memory/", FRAGMENT])
def test_an_account_that_is_not_staff_is_told_so_and_can_sign_out(client, stranger, url):
    client.force_login(stranger)
    response = client.get(url)
    assert response.status_code == 403
    html = " ".join(response.content.decode().split())
    assert "<strong>stranger</strong>, and this account is not marked as staff" in html
    assert 'action="/logout"' in html
    assert "Memories" not in html
    assert client.post("/logout").headers["Location"] == "/login"
    assert client.get("/login").status_code == 200


def test_a_stranger_who_signs_in_meets_the_403_page_and_no_circle(client, stranger):
    response = client.post("/login", {"username": "stranger", "password": "a long password"}, follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert response.status_code == 403
    assert client.get("/login", follow=True).status_code == 403


def test_staff_without_a_permission_are_told_that(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("junior", is_staff=True))
    response = client.get("/admin/memories/memory/")
    assert response.status_code == 403
    assert "<strong>junior</strong> has no permission for this page" in response.content.decode()


# -- pages that say no -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["/", "/feed", FRAGMENT])
def test_staff_without_a_role_see_nothing_of_what_goes_on(client, django_user_model, url):
    EventFactory(message="A secret")
    client.force_login(django_user_model.objects.create_user("junior", is_staff=True))
    response = client.get(url)
    assert response.status_code == 403
    assert "A secret" not in response.content.decode()


@pytest.mark.django_db
def test_an_address_that_leads_nowhere_has_a_page_and_shows_it_as_text(client):
    response = client.get("/no/<b>such</b>")
    assert response.status_code == 404
    assert b"Nothing is here" in response.content
    assert b"<b>such" not in response.content


def test_the_page_for_a_fault_needs_nothing_that_may_be_broken():
    html = render_to_string("500.html")
    assert "Something broke" in html
    assert "{%" not in html


def test_a_form_that_is_too_old_is_explained(operator):
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    response = client.post("/logout")
    assert response.status_code == 403
    assert b"The form was not accepted" in response.content


# -- the content policy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "/",
        "/admin/",
        "/admin/memories/memory/",
        "/admin/memories/memory/add/",
        "/admin/sessions_app/session/",
        "/admin/sessions_app/agent/add/",
        "/admin/auth/user/",
        "/no/such/page",
    ],
)
def test_no_page_needs_an_inline_style_or_script(signed_in, url):
    MemoryFactory()
    SessionFactory()
    response = signed_in.get(url)
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    html = response.content.decode()
    assert not re.search(r"<[^>]+\sstyle=", html)
    assert not re.search(r"<[^>]+\son\w+=", html)
    assert "<style" not in html
    assert not re.search(r"<script(?![^>]*\ssrc=)", html)


def test_what_pages_link_to_is_served_and_comes_from_here(signed_in):
    html = front(signed_in) + signed_in.get("/admin/memories/memory/").content.decode()
    urls = set(re.findall(r'<(?:link|script|img)[^>]+(?:href|src)="([^"]+)"', html))
    assert {"/static/claudeops/app.css", "/static/claudeops/app.js", "/static/claudeops/favicon.svg"} <= urls
    for url in urls:
        assert url.startswith("/"), url
        assert signed_in.get(url).status_code == 200, url


def test_htmx_is_told_to_do_without_eval_and_inline_styles(signed_in):
    found = re.search(r"<meta name=\"htmx-config\" content='([^']+)'", front(signed_in))
    assert found
    assert '"allowEval":false' in found.group(1)
    assert '"includeIndicatorStyles":false' in found.group(1)
