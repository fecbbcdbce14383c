"""A trace reads the big tables through their indexes, whatever it is asked: asked of SQLite's own planner."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from claudeops.features.trace import trace
from tests.claudeops.trace.test_ends import TEXT, logged, prompted, said

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses by the size of its tables"),
]

BIG = "memories|memory_changes|session_log_entries|sessions|injected_memories|recalls|facts|proposal_evidence"
WHOLE = re.compile(rf"SCAN (?:{BIG})\b(?! USING)")


@pytest.mark.parametrize("asked", ["a memory", "its text", "what nobody wrote"])
def test_no_big_table_is_read_whole(asked):
    memory = said()
    session = prompted(task="The cloud does not answer")
    logged("Nothing of the kind", session)
    text = {"a memory": str(memory.pk), "its text": TEXT, "what nobody wrote": "Elephants drink from buckets"}[asked]
    with CaptureQueriesContext(connection) as seen:
        trace(text)
        trace(text, session_id=session.pk)
    for query in (one["sql"] for one in seen if one["sql"].startswith(("SELECT", "WITH"))):
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query}")
            plan = "\n".join(row[3] for row in cursor.fetchall())
        assert not WHOLE.search(plan), f"{query}\n{plan}"
