"""The page of an agent: what it shows, where its days lead, what it costs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from claudeops.features.agents import views
from sessions_app.models import Agent, Session, Status
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db
VIENNA = "Europe/Vienna"


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


@pytest.fixture
def watch():
    return AgentFactory(
        slug="watch", schedule_kind="interval", interval_seconds=5400, description="Looks <b>around</b>"
    )


def ended(agent, at, status=Status.COMPLETED, **columns):
    return SessionFactory(agent=agent, queued_at=at, started_at=at, ended_at=at, status=status, **columns)


def listed(client, url):
    return set(map(int, re.findall(r'href="/sessions/(\d+)"', client.get(url).content.decode())))


def test_each_day_leads_to_exactly_the_sessions_of_that_agent_on_that_day(signed_in, watch):
    now = timezone.now()
    for n in range(60):
        ended(watch, now - timedelta(hours=7 * n), Status.FAILED if n % 5 == 0 else Status.COMPLETED)
        ended(AgentFactory(), now - timedelta(hours=7 * n))
    with timezone.override(VIENNA):
        shown = views.ran(watch, now).days
    assert shown.total == 60
    for cell in shown.filled:
        found = listed(signed_in, cell.part.url)
        assert len(found) == cell.total == watch.sessions.filter(pk__in=found).count(), cell.said
    html = unescape(signed_in.get("/agents/watch").content.decode())
    assert all(cell.part.url.partition("&ended")[0] in html for cell in shown.filled)


def test_a_day_is_one_of_the_persons_zone(watch):
    at = datetime(2026, 11, 24, 12, tzinfo=UTC)
    ended(watch, datetime(2026, 11, 22, 23, 30, tzinfo=UTC))
    with timezone.override(VIENNA):
        assert [cell.part.words for cell in views.ran(watch, at).days.filled] == ["Mon 23 Nov"]
    with timezone.override(UTC):
        assert [cell.part.words for cell in views.ran(watch, at).days.filled] == ["Sun 22 Nov"]


def test_thirteen_weeks_end_with_today_and_begin_with_a_monday(watch):
    at = datetime(2026, 11, 24, 12, tzinfo=UTC)
    days = [cell.part.date for cell in views.ran(watch, at).days.cells]
    assert (days[0].isoformat(), days[0].weekday(), days[-1].isoformat()) == ("2026-08-31", 0, "2026-11-24")


def test_the_cost_of_thirty_days_leaves_out_what_is_older_or_imported(watch):
    now = timezone.now()
    ended(watch, now, cost_usd="0.5")
    ended(watch, now - timedelta(days=20), cost_usd="0.25")
    ended(watch, now - timedelta(days=40), cost_usd=9)
    ended(watch, now, cost_usd=9, trigger="import")
    found = views.ran(watch, now)
    assert (found.runs, f"{found.cost:.2f}") == (3, "0.75")


def test_it_shows_schedule_runs_limits_and_the_way_to_the_admin(signed_in, watch):
    Agent.objects.filter(pk=watch.pk).update(max_turns=7, project=ProjectFactory(slug="nas"))
    session = ended(watch, timezone.now(), summary="All <i>quiet")
    html = signed_in.get("/agents/watch").content.decode()
    for part in (
        "every 90 min",
        "Looks &lt;b&gt;around",
        "All &lt;i&gt;quiet",
        'href="/projects/nas"',
        "<dd>7",
    ):
        assert part in html
    assert f'href="/sessions/{session.pk}"' in html
    assert f'href="/admin/sessions_app/agent/{watch.pk}/change/"' in html


def test_the_tabs_have_the_memories_that_it_made_and_its_prompt(signed_in, watch):
    memory = MemoryFactory(session=ended(watch, timezone.now()), observation="Takes 40 s to start")
    MemoryFactory(session=ended(AgentFactory(), timezone.now()), observation="Of another one")
    html = signed_in.get("/agents/watch?tab=memories").content.decode()
    assert f'href="/memories/{memory.pk}"' in html
    assert "Of another one" not in html
    assert "the one of tier 1" in signed_in.get("/agents/watch?tab=prompt").content.decode()
    Agent.objects.update(prompt_template="Look at <all> of it")
    part = signed_in.get("/agents/watch?tab=prompt", headers={"HX-Request": "true", "HX-Target": "tabs"})
    assert "Look at &lt;all&gt; of it" in part.content.decode()
    assert "<html" not in part.content.decode()


def test_after_run_now_the_page_shows_the_session_and_each_change_of_it(signed_in, watch):
    page = signed_in.post(f"/agents/{watch.pk}/run", {"next": "agent"}, follow=True)
    session = Session.objects.get(agent=watch)
    assert f'id="run-{session.pk}"' in page.content.decode()
    for change in ({"hold_reason": "No place"}, {"status": "running"}, {"status": "failed", "status_reason": "No CLI"}):
        seen = page.context["seen"]
        assert f'hx-get="/agents/watch?seen={seen}"' in page.content.decode()
        assert signed_in.get(f"/agents/watch?seen={seen}").status_code == 204
        Session.objects.update(**change)
        page = signed_in.get(f"/agents/watch?tab=runs&seen={seen}")
        assert page.status_code == 200
        assert next(reversed(change.values())) in page.content.decode()
    Agent.objects.update(enabled=False)
    assert signed_in.get(f"/agents/watch?seen={page.context['seen']}").status_code == 200


def test_a_run_is_its_summary_only_when_it_completed(signed_in, watch):
    now = timezone.now()
    project = ProjectFactory(slug="nas")
    what = [
        ("completed", "The CLI said so", "All is well", "All is well"),
        ("failed", "API Error: 400", "Let me look at the", "API Error: 400"),
        ("timed_out", "No end after 600 s", "I will now", "No end after 600 s"),
        ("stopped", "Stopped by ann", "Next I", "Stopped by ann"),
        ("failed", "", "Its last words", "Its last words"),
        ("queued", "", "", "No place is free"),
    ]
    for status, reason, summary, shown in what:
        Session.objects.all().delete()
        hold = shown if status == "queued" else ""
        session = ended(watch, now, status, status_reason=reason, summary=summary, hold_reason=hold, project=project)
        pages = {"/agents/watch": "run", "/projects/nas?tab=sessions": "session"}
        for page, name in pages.items():
            html = signed_in.get(page).content.decode()
            assert f'id="{name}-{session.pk}" href="/sessions/{session.pk}">#{session.pk} {shown}</a>' in html, status
        bulk = signed_in.post("/sessions/bulk", {"action": "again", "ids": [session.pk]}).content.decode()
        assert status == "queued" or f">{shown}</a>" in bulk, status


def test_pause_and_resume_lead_back_to_the_page(signed_in, watch):
    for verb, enabled in (("pause", False), ("resume", True)):
        answer = signed_in.post(f"/agents/{watch.pk}/{verb}", {"next": "agent"})
        assert answer.headers["Location"] == "/agents/watch"
        assert Agent.objects.get().enabled is enabled


def test_a_viewer_sees_it_without_actions_and_nobody_else_does(client, watch):
    viewer = User.objects.create_user("viewer", password="x", is_staff=True)
    viewer.groups.add(Group.objects.get(name="viewer"))
    client.force_login(viewer)
    html = client.get("/agents/watch").content.decode()
    assert "agent-run" not in html
    assert "agent-switch" not in html
    assert client.get("/agents/no-such-agent").status_code == 404
    other = User.objects.create_user("other", password="x", is_staff=True)
    other.user_permissions.add(*Permission.objects.filter(codename="view_session"))
    client.force_login(other)
    assert client.get("/agents/watch").status_code == 403


def test_it_asks_as_many_queries_however_much_it_ran(signed_in, watch):
    def asked() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            signed_in.get("/agents/watch?tab=memories")
        return len(queries)

    now = timezone.now()
    counts = []
    for _ in range(2):
        for n in range(10):
            MemoryFactory(session=ended(watch, now - timedelta(hours=n)))
        counts.append(asked())
    assert counts[0] == counts[1] <= 26


def test_the_sidebar_marks_agents(signed_in):
    AgentFactory(slug="watcher")
    assert '"page">Agents<' in signed_in.get("/agents/watcher").content.decode()
