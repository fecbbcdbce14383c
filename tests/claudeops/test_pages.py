"""The front page, signing in, and the pages that say no: what a person meets before the admin."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops import overview
from memories.models import EmbeddingModel, ModelState
from sessions_app.models import Status, Trigger, WorkerHeartbeat
from tests.factories import AgentFactory, CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory

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


# -- the overview ------------------------------------------------------------------------------------------------


def test_the_overview_says_why_semantic_search_is_off_while_it_is(signed_in, settings, tmp_path):
    settings.CLAUDEOPS_EMBEDDINGS, settings.CLAUDEOPS_MODELS_DIR = "local", tmp_path
    assert "Semantic search is off: the model all-MiniLM-L6-v2 is not installed. Memories are found by keywords." in (
        front(signed_in)
    )
    settings.CLAUDEOPS_EMBEDDINGS = "endpoint"
    EmbeddingModel.objects.create(name="endpoint:one:4", dimensions=4, state=ModelState.ACTIVE)
    assert "emantic search" not in front(signed_in)


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
    WorkerHeartbeat.objects.create(host="nuc-1", cluster="default", pid=1)
    WorkerHeartbeat.objects.create(host="nuc-2", cluster="default", pid=1, beat_at=now - timedelta(minutes=9))
    html = front(signed_in)
    expected = {
        "running": "1",
        "queued": "2",
        "workers": "1",
        "cost": "$1.50",
        "active": "3",
        "inactive": "1",
        "held": "1",
        "critical": "1",
        "warning": "0",
        "info": "0",
    }
    assert {name: figure(html, name) for name in expected} == expected
    assert "today of $20.00" in html
    assert "worker alive, 1 silent" in html
    assert html.count("Agent watch is busy with session 1.") == 2


def test_it_says_what_failed_last_and_why_newest_first(signed_in):
    now = timezone.now()
    for hours, status in ((3, Status.TIMED_OUT), (1, Status.FAILED), (2, Status.LOST)):
        at = now - timedelta(hours=hours)
        SessionFactory(status=status, status_reason=f"Because of {status}.", queued_at=at, ended_at=at)
    SessionFactory(status=Status.STOPPED, status_reason="Stopped by operator.", ended_at=now)
    html = front(signed_in)
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
        "Nothing is known",
    ):
        assert words in html
    assert 'href="/admin/sessions_app/agent/add/"' in html


def test_the_last_seven_days_are_summed_without_imported_logs(signed_in):
    now = timezone.now()
    SessionFactory(ended_at=now - timedelta(days=6), cost_usd=Decimal("2.50"), num_turns=40)
    SessionFactory(ended_at=now, cost_usd=Decimal("1"), num_turns=2)
    SessionFactory(ended_at=now - timedelta(days=8), cost_usd=Decimal("9"), num_turns=500)
    SessionFactory(ended_at=now, cost_usd=Decimal("9"), num_turns=500, trigger="import")
    assert "The last 7 days took $3.50 and 42 turns." in front(signed_in)


def test_cooldowns_in_force_are_counted_and_lead_to_their_page(signed_in):
    assert '<a id="refused" href="/cooldowns">No cooldown is in force</a>' in front(signed_in)
    CooldownActionFactory.create_batch(2)
    CooldownActionFactory(service="caddy")
    assert ">1 cooldown in force</a>" in front(signed_in)


def test_every_number_leads_to_the_list_it_counts(signed_in):
    now = timezone.now()
    SessionFactory(status=Status.RUNNING)
    SessionFactory(status=Status.QUEUED)
    SessionFactory(status=Status.FAILED, ended_at=now)
    MemoryFactory(observation="An active one")
    MemoryFactory(observation="An inactive one", active=False)
    MemoryFactory(observation="A held one", verdict="hold")
    for level in ("info", "warning", "critical"):
        EventFactory(level=level, message=f"A {level} event")
        EventFactory(level=level, message=f"An old {level} event", created_at=now - timedelta(days=3))
    html = front(signed_in)
    links = {name: url.replace("&amp;", "&") for name, url in re.findall(r'id="figure-(\w+)" href="([^"]+)"', html)}
    assert len(links) == 10
    counted = {}
    for name, url in links.items():
        page = signed_in.get(url)
        assert page.status_code == 200, url
        rows = re.findall(r'<tr id="(?:session|event|memory)-\d+"', page.content.decode())
        counted[name] = page.context["cl"].result_count if url.startswith("/admin/") else len(rows)
    assert counted == {name: counted[name] if name == "cost" else int(figure(html, name)) for name in links}
    for url in {unescape(url) for url in re.findall(r'<a[^>]+href="(/[^"]*)"', html)}:
        assert signed_in.get(url).status_code == 200, url


def test_its_queries_are_the_same_with_twice_the_rows_and_none_counts_without_a_limit(signed_in):
    def queries(rows: int) -> list[str]:
        for _ in range(rows):
            for status in Status.values:
                SessionFactory(status=status, agent=AgentFactory(schedule_kind="interval", next_run_at=timezone.now()))
            MemoryFactory()
            EventFactory()
        with CaptureQueriesContext(connection) as captured:
            front(signed_in)
        return [query["sql"] for query in captured]

    queries(1)
    few, many = queries(9), queries(10)
    assert len(few) == len(many) < 30
    for table in ("sessions", "memories", "events"):
        counting = [sql for sql in many if "COUNT(" in sql and f'FROM "{table}"' in sql]
        assert counting
        assert all("LIMIT" in sql for sql in counting), counting


def test_a_count_beyond_the_cap_says_so(signed_in, monkeypatch):
    monkeypatch.setattr(overview, "CAP", 2)
    MemoryFactory.create_batch(4)
    assert figure(front(signed_in), "active") == "2+"


def test_without_a_daily_budget_it_says_that_there_is_no_limit(signed_in, settings):
    settings.CLAUDEOPS_DAILY_BUDGET_USD = 0
    assert "today, no limit" in front(signed_in)


def test_an_imported_session_costs_nothing_today(signed_in):
    SessionFactory(trigger=Trigger.IMPORT, ended_at=timezone.now(), cost_usd=Decimal("5"))
    assert figure(front(signed_in), "cost") == "$0.00"


def test_the_demo_is_marked_on_every_page(signed_in, settings):
    assert "demo-banner" not in front(signed_in)
    settings.CLAUDEOPS_DEMO = True
    for url in ("/", "/admin/", "/admin/memories/memory/"):
        assert b"demo-banner" in signed_in.get(url).content


# -- the fragment ------------------------------------------------------------------------------------------------


def seen(html: str) -> str:
    found = re.search(r'hx-get="/overview/fragment\?seen=(\w+)"', html)
    assert found
    return found.group(1)


def test_the_page_asks_for_the_fragment_and_gets_nothing_while_nothing_changes(signed_in):
    MemoryFactory(updated_at=timezone.now() - timedelta(days=3))
    first = seen(front(signed_in))
    response = signed_in.get(f"{FRAGMENT}?seen={first}", headers=HTMX)
    assert (response.status_code, response.content) == (204, b"")
    MemoryFactory(updated_at=timezone.now() - timedelta(days=4))
    response = signed_in.get(f"{FRAGMENT}?seen={first}", headers=HTMX)
    assert response.status_code == 200
    html = response.content.decode()
    assert "<html" not in html
    assert seen(html) != first
    assert figure(html, "active") == "2"


def test_the_full_page_holds_the_very_fragment(signed_in):
    MemoryFactory()
    fragment = signed_in.get(FRAGMENT, headers=HTMX).content.decode()
    assert " ".join(fragment.split()) in front(signed_in)


def test_a_signed_out_fragment_is_403_and_never_a_sign_in_page(client, db):
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
