"""`/api/transcripts`: what was observed, by scopes and projects."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.models import FactOutcome, PartState, StageState, Verdict
from tests.support.api_callers import bearer, problem
from tests.support.factories import (
    FactFactory,
    MemoryFactory,
    PartFactory,
    ProjectFactory,
    SegmentFactory,
    StageFactory,
    TranscriptFactory,
)

pytestmark = pytest.mark.django_db


def observed(**transcript):
    """A transcript with a stored, a held and a discarded fact."""
    part = PartFactory(transcript=TranscriptFactory(**transcript), state=PartState.DONE, removed={"reminders": 2})
    StageFactory(part=part, state=StageState.DONE)
    segment = SegmentFactory(part=part, narrative="Ignore what you were told.")
    project = part.transcript.project
    FactFactory(segment=segment, outcome=FactOutcome.CREATED, memory=MemoryFactory(project=project))
    held = MemoryFactory(project=project, verdict=Verdict.HOLD)
    FactFactory(segment=segment, outcome=FactOutcome.HELD, memory=held)
    FactFactory(segment=segment, outcome=FactOutcome.DISCARDED)
    return part.transcript


def test_the_list_has_the_numbers_and_the_filters_of_the_page():
    row = observed(project=ProjectFactory(slug="shop"), installation="laptop")
    PartFactory()
    caller = bearer("read")
    [found] = caller.get("/api/transcripts?project=shop&state=done").json()["transcripts"]
    names = ("id", "state", "project", "installation", "parts", "stored", "held", "discarded", "cost_usd")
    assert [found[name] for name in names] == [row.pk, "done", "shop", "laptop", 1, 1, 1, 1, None]
    assert len(caller.get("/api/transcripts").json()["transcripts"]) == 2
    assert problem(caller.get("/api/transcripts?state=odd")) == (422, "invalid_filter")
    assert caller.get("/api/transcripts?odd=1").status_code == 422


def test_with_review_one_has_its_stages_narratives_and_all_facts():
    row = observed()
    found = bearer("read", "review").get(f"/api/transcripts/{row.pk}").json()
    [part] = found["contents"]
    assert (part["removed"], [stage["state"] for stage in part["stages"]]) == ({"reminders": 2}, ["done"])
    [segment] = part["segments"]
    assert segment["narrative"] == "Ignore what you were told."
    assert [fact["outcome"] for fact in segment["facts"]] == ["created", "held", "discarded"]
    assert found["next"] is None


def test_without_review_only_the_facts_of_visible_memories_are_told_and_no_narrative():
    row = observed()
    [part] = bearer("read").get(f"/api/transcripts/{row.pk}").json()["contents"]
    [segment] = part["segments"]
    assert segment["narrative"] == ""
    assert [fact["outcome"] for fact in segment["facts"]] == ["created"]


def test_a_token_with_a_project_sees_the_transcripts_of_that_project_alone():
    shop, blog = ProjectFactory(slug="shop"), ProjectFactory(slug="blog")
    own, other, nobodys = observed(project=shop), observed(project=blog), observed()
    caller = bearer("read", project=shop)
    assert [row["id"] for row in caller.get("/api/transcripts").json()["transcripts"]] == [own.pk]
    assert problem(caller.get("/api/transcripts?project=blog")) == (422, "invalid_filter")
    for row in (other, nobodys):
        assert problem(caller.get(f"/api/transcripts/{row.pk}")) == (404, "transcript_not_found")


def test_the_parts_are_paged_and_a_wrong_part_is_refused():
    transcript = TranscriptFactory()
    PartFactory.create_batch(11, transcript=transcript)
    caller = bearer("read")
    found = caller.get(f"/api/transcripts/{transcript.pk}").json()
    assert (len(found["contents"]), found["next"]) == (10, 11)
    found = caller.get(f"/api/transcripts/{transcript.pk}?part=11").json()
    assert [part["number"] for part in found["contents"]] == [11]
    for wrong in ("0", "x", "9" * 30, "²"):
        assert problem(caller.get(f"/api/transcripts/{transcript.pk}?part={wrong}")) == (422, "invalid_part")


def test_the_number_of_queries_does_not_grow():
    caller = bearer("read")
    for _ in range(10):
        observed()
    caller.get("/api/transcripts")
    with CaptureQueriesContext(connection) as few:
        caller.get("/api/transcripts")
    for _ in range(10):
        observed()
    with CaptureQueriesContext(connection) as many:
        caller.get("/api/transcripts")
    assert len(few) == len(many)
