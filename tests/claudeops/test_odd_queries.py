"""Whatever is sent as a filter, a query or a file of memories is answered or refused, never an exception."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memories.errors import MemoriesError
from memories.exchange.import_export import import_lines
from memories.queries.change_filters import MemoryChangeFilterSet
from memories.queries.filters import MemoryFilterSet
from memories.recall import Filters, recall
from sessions_app.queries.filters import EventListFilterSet, SessionFilterSet
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db

TIMES = st.sampled_from(
    ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2026-02-30", "-1", "1e999", "today"]
)
NUMBERS = st.integers(-(2**70), 2**70).map(str)
TEXTS = st.text(max_size=40)
VALUES = st.one_of(TIMES, NUMBERS, TEXTS, st.sampled_from(["%00", "null", "general", "none", "x" * 5000, "a,b", "٣"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | TIMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FIELDS = (  # noqa: SIM905
    "uuid taxonomy category service project agent observation confidence active inactive_reason tier source verdict "
    "tags persistent merged_count created_at updated_at expires_at approved_at decayed_until superseded_by signature"
).split()
ROWS = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6).map(
    lambda odd: {"taxonomy": "ops", "category": "timing", "observation": "The dump takes an hour"} | odd
)


@pytest.mark.parametrize("filters", [MemoryFilterSet, MemoryChangeFilterSet, SessionFilterSet, EventListFilterSet])
@given(data=st.data())
def test_filters(filters, data):
    names = sorted(filters.base_filters)
    found = filters(data.draw(st.dictionaries(st.sampled_from(names), VALUES, min_size=1, max_size=4)))
    if found.is_valid():
        list(found.qs[:3])


@given(query=st.one_of(TEXTS, st.text('"*^():-+~AND OR NEAR密码', max_size=60), VALUES))
def test_queries(query):
    if not MemoryFilterSet().qs.exists():
        MemoryFactory(observation="The dump takes an hour")
    recall(query, Filters())


@example(lines=['{"category": "timing", "observation": "The dump takes an hour", "service": [null]}'], trust=False)
@given(lines=st.lists(ROWS.map(json.dumps) | JSON.map(json.dumps) | TEXTS, min_size=1, max_size=3), trust=st.booleans())
def test_files_of_memories(lines, trust):
    try:
        import_lines(lines, by="anna", trust=trust)
    except MemoriesError as refused:
        assert "line" in str(refused) or str(refused)
