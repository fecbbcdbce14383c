"""Lists that stay quick: counts with a cap, choices by jumps through the index."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from claudeops.lib import admin_lists, capped
from claudeops.lib.admin_lists import CappedPaginator
from claudeops.lib.distinct import distinct_values
from memories.models import Memory
from tests.support.factories import MemoryFactory


@pytest.mark.django_db
def test_a_count_stops_at_the_cap_and_says_that_there_are_more(monkeypatch):
    for module in (admin_lists, capped):
        monkeypatch.setattr(module, "CAP", 5)
    MemoryFactory.create_batch(7)
    paginator = CappedPaginator(Memory.objects.order_by("id"), 2)
    assert (paginator.count, paginator.shown, paginator.num_pages) == (5, "5+", 3)


@pytest.mark.django_db
def test_a_count_below_the_cap_is_exact():
    MemoryFactory.create_batch(3)
    paginator = CappedPaginator(Memory.objects.order_by("id"), 2)
    assert (paginator.count, paginator.shown) == (3, "3")


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
