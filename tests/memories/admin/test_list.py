"""The list of memories: what a row says, what narrows it, and what it costs."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.support.factories import MemoryFactory, ProjectFactory, SessionFactory

LIST = "/admin/memories/memory/"


@pytest.fixture
def page(client, operator):
    """The list as the operator gets it, for a query string."""
    client.force_login(operator)

    def get(query: str = "") -> str:
        response = client.get(LIST + query)
        assert response.status_code == 200, (query, response.status_code, response.headers.get("Location"))
        return response.content.decode()

    return get


def listed(html: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<th class="field-text"><a href="/memories/(\d+)"', html)]


def test_a_row_shows_the_memory_and_where_it_is_from(page):
    session = SessionFactory()
    memory = MemoryFactory(confidence=0.55, session=session, updated_at=datetime(2026, 3, 5, 12, 30, tzinfo=UTC))
    MemoryFactory(session=None, source="human", active=False, inactive_reason="contradicted")
    html = page()
    assert memory.observation in html
    assert '<td class="field-confidence">0.55</td>' in html
    assert '<td class="field-updated_at nowrap">2026-03-05 12:30:00</td>' in html
    assert f'<a href="/sessions/{session.pk}">session {session.pk}</a>' in html
    assert '<td class="field-origin">a person</td>' in html
    assert '<td class="field-inactive_reason">contradicted</td>' in html


def test_what_a_memory_says_is_text_and_never_markup(page):
    MemoryFactory(observation="<script>alert(1)</script>", service=None)
    html = page()
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_each_filter_narrows_to_its_rows(page):
    now = timezone.now()
    project = ProjectFactory(slug="media")
    known = {
        "plain": MemoryFactory(service="caddy", category="timing", confidence=0.9, updated_at=now),
        "general": MemoryFactory(service=None, category="behavior", confidence=0.6, updated_at=now - timedelta(days=2)),
        "old": MemoryFactory(service="caddy", confidence=0.4, updated_at=now - timedelta(days=100)),
        "inactive": MemoryFactory(active=False, confidence=0.1, updated_at=now - timedelta(days=40)),
        "held": MemoryFactory(verdict="hold", persistent=True),
        "mine": MemoryFactory(source="human", taxonomy="project", category="pattern", project=project),
    }

    def names(query: str) -> set[str]:
        found = set(listed(page(query)))
        return {name for name, memory in known.items() if memory.pk in found}

    assert names("?service=general") == {"general"}
    assert names("?service=caddy") == {"plain", "old"}
    assert names("?status=active") == {"plain", "general", "old", "mine"}
    assert names("?status=inactive") == {"inactive"}
    assert names("?status=held") == {"held"}
    assert names("?persistent__exact=1") == {"held"}
    assert names("?category=behavior") == {"general"}
    assert names("?age=hour") == {"plain", "held", "mine"}
    assert names("?age=older") == {"old", "inactive"}
    assert names("?age=old") == {"old"}
    assert names("?source__exact=human") == {"mine"}
    assert names("?taxonomy=project") == {"mine"}
    assert names(f"?project__id__exact={project.pk}") == {"mine"}
    assert names("?project__isnull=True") == set(known) - {"mine"}
    assert names("?q=observation+caddy") == {"plain", "old"}


@pytest.mark.parametrize(
    "query", ["?status=nonsense", "?service=nosuch", "?category=misc", "?age=ages", "?source__exact=x"]
)
def test_a_filter_value_that_nobody_offers_matches_nothing_rather_than_everything(page, query):
    """A bulk action on "all that match" would otherwise be one on everything."""
    MemoryFactory.create_batch(3)
    assert listed(page(query)) == []


def test_the_choices_of_the_service_filter_are_those_in_use_and_general(page):
    MemoryFactory(service="caddy")
    html = page()
    assert 'href="?service=caddy"' in html
    assert 'href="?service=general"' in html
    assert 'href="?service=jellyfin"' not in html


def test_an_empty_list_says_so_and_offers_no_action(page):
    html = page()
    assert "There are no memories yet." in html
    assert 'name="action"' not in html
    MemoryFactory()
    assert "No memories match." in page("?service=caddy")


@pytest.mark.parametrize("query", ["", "?status=active&service=jellyfin&age=month&q=number", "?o=4"])
def test_the_number_of_queries_does_not_grow_with_the_rows(page, query):
    for _ in range(10):
        MemoryFactory(session=SessionFactory())
    page(query)
    with CaptureQueriesContext(connection) as few:
        page(query)
    for _ in range(10):
        MemoryFactory(session=SessionFactory(), project=ProjectFactory())
    with CaptureQueriesContext(connection) as many:
        page(query)
    assert len(many) == len(few)
    assert len(few) <= 22


def test_no_query_of_the_list_counts_without_a_limit(page):
    MemoryFactory.create_batch(3)
    with CaptureQueriesContext(connection) as queries:
        page()
    counting = [q["sql"] for q in queries if "COUNT(" in q["sql"].upper() and '"memories"' in q["sql"]]
    assert counting
    assert all("LIMIT" in sql for sql in counting)


def test_a_stranger_and_a_signed_out_browser_do_not_see_the_list(client, stranger):
    MemoryFactory()
    assert client.get(LIST).headers["Location"] == f"/login?next={LIST}"
    client.force_login(stranger)
    assert client.get(LIST).status_code == 403


def test_staff_without_a_permission_are_refused(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("junior", is_staff=True))
    assert client.get(LIST).status_code == 403


def test_the_list_narrows_by_trust(page):
    MemoryFactory(observation="From a person", source="human")
    MemoryFactory(observation="From a log", exposure="outside")
    html = page("?trust__exact=external")
    assert "From a log" in html
    assert "From a person" not in html


def test_the_list_narrows_by_exposure(page):
    MemoryFactory(observation="From the house", exposure="house")
    MemoryFactory(observation="From a log", exposure="outside")
    html = page("?exposure__exact=outside")
    assert "From a log" in html
    assert "From the house" not in html
