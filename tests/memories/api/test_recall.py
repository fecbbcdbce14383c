"""`POST /api/recall`, `GET /api/memories/search`: the same answer, within what the token may see."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from memories.models import Recalled, Verdict
from tests.support.api_callers import bearer, problem
from tests.support.factories import MemoryFactory, PartFactory, ProjectFactory, SegmentFactory, TranscriptFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def house():
    mine, other = ProjectFactory(slug="mine"), ProjectFactory(slug="other")
    text = "The nightly backup needs the NAS"
    return mine, {
        "mine": MemoryFactory(project=mine, service="a", observation=f"{text} in mine", tags=["x"]).pk,
        "other": MemoryFactory(project=other, service="b", observation=f"{text} elsewhere").pk,
        "global": MemoryFactory(service="c", observation=f"{text} everywhere").pk,
        "held": MemoryFactory(service="d", verdict=Verdict.HOLD, observation=f"{text} perhaps").pk,
    }


def both(caller, **question):
    """Return the ids that both ways return; they must agree."""
    posted = caller.post("/api/recall", {"query": "nightly backup NAS", **question})
    words = {name: str(value).lower() if isinstance(value, bool) else value for name, value in question.items()}
    address = urlencode({"q": "nightly backup NAS", **words}, doseq=True)
    got = caller.get(f"/api/memories/search?{address}")
    assert (posted.status_code, got.status_code) == (200, 200), (posted.content, got.content)
    ids = [hit["memory_id"] for hit in posted.json()["hits"]]
    assert ids == [hit["memory_id"] for hit in got.json()["hits"]]
    return set(ids)


def test_a_token_without_a_project_asks_everything_or_what_it_names(house):
    _, pk = house
    caller = bearer("read")
    assert both(caller) == {pk["mine"], pk["other"], pk["global"]}
    assert both(caller, project="mine") == {pk["mine"], pk["global"]}
    assert both(caller, project="global") == {pk["global"]}
    assert both(caller, service="a") == {pk["mine"]}
    assert both(caller, tags=["x"]) == {pk["mine"]}
    refused = caller.post("/api/recall", {"query": "nightly backup NAS", "include_hold": True})
    assert problem(refused) == (403, "forbidden")
    assert "scope review" in refused.json()["error"]["message"]
    assert both(bearer("read", "review", name="reviewer"), include_hold=True) == set(pk.values())
    assert len(both(caller, limit=1)) == 1
    assert both(caller, as_of="2020-01-01T00:00:00Z") == set()


def test_a_token_with_a_project_asks_that_one_and_is_told_nothing_of_others(house):
    mine, pk = house
    caller = bearer("read", project=mine)
    assert both(caller, profile="deep") == {pk["mine"], pk["global"]}
    assert both(caller, project="global") == {pk["global"]}
    for name in ("other", "nowhere"):
        assert problem(caller.post("/api/recall", {"query": "x", "project": name})) == (403, "forbidden")
    assert "other scope" not in caller.post("/api/recall", {"query": "nightly backup NAS"}).content.decode()


def test_what_was_asked_is_kept_under_the_tokens_name(house):
    answer = bearer("read", name="n8n").post("/api/recall", {"query": "nightly backup NAS"}).json()
    row = Recalled.objects.get(pk=answer["recall_id"])
    assert (row.surface, row.actor, len(row.hits)) == ("api", "token n8n", 3)


def test_each_hit_has_its_parts_and_the_answer_its_trace(house):
    answer = bearer("read").post("/api/recall", {"query": "nightly backup NAS", "limit": 1}).json()
    (hit,) = answer["hits"]
    assert {"keyword_rank", "keyword_score", "vector_rank", "cosine", "fused", "final"} <= set(hit["parts"])
    assert hit["score"] == hit["parts"]["final"]
    assert answer["trace"]["semantic"].startswith(("on", "off: "))


@pytest.mark.parametrize(
    "question",
    [
        {"profile": "huge"},
        {"limit": 0},
        {"limit": 900},
        {"as_of": "2020-01-01T00:00:00"},
        {"category": "weather"},
        {"taxonomy": "x"},
        {"service": "two words"},
        {"colour": "red"},
    ],
)
def test_what_is_wrong_is_refused_alike_by_both(question):
    caller = bearer("read")
    assert problem(caller.post("/api/recall", {"query": "x", **question}))[0] == 422
    assert problem(caller.get(f"/api/memories/search?{urlencode({'q': 'x', **question})}"))[0] == 422


@pytest.mark.parametrize("query", ["", " ", '"', "NOT (", "*:*", "🙂", "%", "a" * 100_000, "\ttab"])
def test_any_query_is_answered(query, house):
    assert bearer("read").post("/api/recall", {"query": query}).status_code == 200


def test_a_question_without_words_in_the_address_is_refused():
    assert problem(bearer("read").get("/api/memories/search")) == (422, "invalid_request")


def test_narratives_stand_beside_the_hits_for_a_reviewer_alone(house):
    mine, pk = house
    for project, text in ((mine, "Ann moved the backup."), (ProjectFactory(slug="third"), "Bob moved the backup.")):
        part = PartFactory(transcript=TranscriptFactory(project=project))
        SegmentFactory(part=part, narrative=text)
    question = {"query": "nightly backup NAS", "include": ["narratives"]}
    assert problem(bearer("read").post("/api/recall", question)) == (403, "forbidden")
    answer = bearer("read", "review", name="reviewer").post("/api/recall", question).json()
    assert {hit["memory_id"] for hit in answer["hits"]} == {pk["mine"], pk["other"], pk["global"]}
    assert {one["narrative"] for one in answer["narratives"]} == {"Ann moved the backup.", "Bob moved the backup."}
    confined = bearer("read", "review", project=mine, name="confined")
    (one,) = confined.get("/api/memories/search?q=backup&include=narratives").json()["narratives"]
    assert one["narrative"] == "Ann moved the backup."
    assert bearer("read", name="other").post("/api/recall", {"query": "x"}).json()["narratives"] is None
    unknown = bearer("read", "review", name="more").post("/api/recall", {"query": "x", "include": ["facts"]})
    assert unknown.status_code == 422
