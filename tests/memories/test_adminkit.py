"""Lists that stay quick: counts that stop, choices by jumps through the index, dates from two looks."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from claudeops.lib import admin_lists
from claudeops.lib.admin_lists import CappedPaginator, distinct_values
from memories.models import Memory
from memories.templatetags.claudeops_admin import lean_dates
from tests.factories import MemoryFactory


@pytest.mark.django_db
def test_a_count_stops_at_the_cap_and_says_that_there_are_more(monkeypatch):
    monkeypatch.setattr(admin_lists, "CAP", 5)
    MemoryFactory.create_batch(7)
    paginator = CappedPaginator(Memory.objects.order_by("id"), 2)
    assert (paginator.count, paginator.shown, paginator.num_pages, paginator.capped) == (5, "5+", 3, True)


@pytest.mark.django_db
def test_a_count_below_the_cap_is_exact():
    MemoryFactory.create_batch(3)
    paginator = CappedPaginator(Memory.objects.order_by("id"), 2)
    assert (paginator.count, paginator.shown, paginator.capped) == (3, "3", False)


@pytest.mark.django_db
def test_the_values_of_a_column_are_found_in_one_query_however_many_rows():
    for service in ("jellyfin", "caddy", None, "caddy", "postgres", "jellyfin"):
        MemoryFactory(service=service)
    with CaptureQueriesContext(connection) as queries:
        assert distinct_values(Memory, "service") == ["caddy", "jellyfin", "postgres"]
        assert distinct_values(Memory, "service", most=2) == ["caddy", "jellyfin"]
    assert len(queries) == 2


@pytest.mark.django_db
def test_an_empty_table_has_no_values():
    assert distinct_values(Memory, "service") == []


def dates(days: tuple[datetime, datetime] | None, **chosen: str) -> dict:
    """The hierarchy for rows between `days` with `chosen` parts in the query string."""

    def query(new: dict[str, object], remove: list[str]) -> str:
        return "?" + "&".join(f"{name.removeprefix('at__')}={value}" for name, value in new.items())

    return lean_dates(
        SimpleNamespace(
            date_hierarchy="at",
            days=days and (days[0].date(), days[1].date()),
            params={f"at__{part}": value for part, value in chosen.items()},
            get_query_string=query,
        )
    )


FIRST, LAST = datetime(2025, 11, 28, tzinfo=UTC), datetime(2026, 2, 3, tzinfo=UTC)


def titles(found: dict) -> list[str]:
    return [choice["title"] for choice in found["choices"]]


def test_rows_of_several_years_are_offered_by_year_then_month_then_day():
    assert titles(dates((FIRST, LAST))) == ["2025", "2026"]
    assert titles(dates((FIRST, LAST), year="2026")) == ["Jan 2026", "Feb 2026"]
    month = dates((FIRST, LAST), year="2026", month="2")
    assert titles(month) == ["1 Feb", "2 Feb", "3 Feb"]
    assert month["choices"][2]["link"] == "?year=2026&month=2&day=3"
    day = dates((FIRST, LAST), year="2026", month="2", day="3")
    assert day["back"]["link"] == "?year=2026&month=2"
    assert titles(day) == ["3 February"]


def test_rows_of_one_year_are_offered_by_month_at_once():
    found = dates((datetime(2026, 3, 30, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)))
    assert titles(found) == ["Mar 2026", "Apr 2026", "May 2026"]


def test_no_rows_offer_no_dates():
    assert dates(None) == {"choices": []}
