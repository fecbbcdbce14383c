"""`manage.py memory recall`."""

from __future__ import annotations

import pytest

from memories.models import Verdict
from tests.memories.commands.test_memory import document, run
from tests.support.factories import MemoryFactory, ProjectFactory, SegmentFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def backup():
    return MemoryFactory(service="nas", category="dependency", observation="The nightly backup needs the NAS mounted")


def test_it_prints_the_best_first_with_score_and_scope(backup):
    MemoryFactory(service="caddy", observation="Needs a reload")
    code, out, _ = run("recall", "what does the nightly backup need?")
    first = out.splitlines()[0]
    assert code == 0
    assert first.startswith(" 1. ")
    assert f"{backup.pk}  [dependency:nas] {backup.observation} (0.7)" in first


def test_json_is_one_document_with_parts_and_trace(backup):
    code, answer = document("recall", "nightly backup")
    assert (code, answer["command"]) == (0, "memory recall")
    (hit,) = answer["result"]["hits"]
    assert (hit["memory_id"], hit["project"]) == (backup.pk, None)
    assert {"keyword_rank", "cosine", "fused", "age_factor", "boosts", "final"} <= set(hit["parts"])
    assert answer["result"]["trace"]["semantic"]


def test_explain_says_what_each_score_is_made_of_and_what_was_left_out(backup):
    MemoryFactory(verdict=Verdict.HOLD, observation="The nightly backup is held")
    code, out, _ = run("recall", "nightly backup", "--explain")
    assert code == 0
    for part in ("keyword rank", "vector rank", "fused", "age factor", "boosts", "final", "Semantic search is"):
        assert part in out
    assert "Left out: 1 held" in out


def test_the_options_narrow(backup):
    mine = MemoryFactory(project=ProjectFactory(slug="mine"), observation="The nightly backup of mine", tags=["a"])
    held = MemoryFactory(verdict=Verdict.HOLD, observation="The nightly backup is held")

    def ids(*options):
        return {hit["memory_id"] for hit in document("recall", "nightly backup", *options)[1]["result"]["hits"]}

    assert ids() == {backup.pk, mine.pk}
    assert ids("--project", "global") == {backup.pk}
    assert ids("--service", "nas") == {backup.pk}
    assert ids("--category", "dependency") == {backup.pk}
    assert ids("--tag", "a") == {mine.pk}
    assert ids("--include-hold") == {backup.pk, mine.pk, held.pk}
    assert len(ids("--limit", "1")) == 1
    assert ids("--taxonomy", "agent") == set()
    assert ids("--as-of", "2020-01-01") == set()


def test_nothing_found_is_said_and_no_error():
    code, out, _ = run("recall", "zeppelin")
    assert (code, out.splitlines()[0]) == (0, "No memory answers this.")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--limit", "900"], "limit is 900; allowed is 1 to 100"),
        (["--as-of", "yesterday"], "--as-of is 'yesterday'"),
        (["--project", "nowhere"], "There is no project 'nowhere'"),
        (["--category", "weather"], "category is 'weather'"),
        (["--taxonomy", "x"], "taxonomy is 'x'"),
        (["--service", "two words"], "service is 'two words'"),
    ],
)
def test_what_is_wrong_is_named(options, said):
    code, out, err = run("recall", "x", *options)
    assert (code, out) == (1, "")
    assert said in err


def test_narratives_are_printed_when_asked_for(backup):
    SegmentFactory(narrative="Ann mounted the NAS for the nightly backup.")
    _, out, _ = run("recall", "nightly backup")
    assert "Ann mounted" not in out
    _, out, _ = run("recall", "nightly backup", "--include", "narratives")
    assert "Narratives of observed sessions:" in out
    assert "Ann mounted the NAS for the nightly backup." in out
    _, answer = document("recall", "nightly backup", "--include", "narratives")
    assert [one["narrative"] for one in answer["result"]["narratives"]] == [
        "Ann mounted the NAS for the nightly backup."
    ]
