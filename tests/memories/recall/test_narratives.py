"""Narratives of observed sessions are found by their words, within a project, beside the hits, and told to nobody."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection

from memories.injection.knowledge import select_knowledge
from memories.models import Segment
from memories.recall import Filters, narratives
from memories.recall.filters import ANY_AGENT, ANY_PROJECT
from tests.support.factories import PartFactory, ProjectFactory, SegmentFactory, SessionFactory, TranscriptFactory

pytestmark = pytest.mark.django_db
AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
ALL = Filters(ANY_PROJECT, ANY_AGENT)


def told(text="Ann moved the backups to the north store.", **fields):
    return SegmentFactory(narrative=text, part=PartFactory(transcript=TranscriptFactory(last_at=AT, **fields)))


def found(query="where are the backups stored", filters=ALL):
    return [one.segment for one in narratives.search(query, filters)]


def test_a_narrative_is_found_by_the_words_that_it_shares_and_the_best_comes_first():
    some = told("The backup failed once.")
    best = told()
    for number in range(5):
        told(f"Bob asked about certificate {number}.")
    assert found() == [best.pk, some.pk]
    scores = [one.score for one in narratives.search("where are the backups stored", ALL)]
    assert scores[0] > scores[1] > 0
    one = narratives.search("backups", ALL)[0]
    assert one.as_dict() == {
        "segment": one.segment,
        "number": 1,
        "transcript": one.transcript,
        "source": f"{Segment.objects.get(pk=one.segment).transcript.source_name}-segment-1",
        "narrative": one.narrative,
        "score": one.score,
        "at": AT.isoformat(),
    }


def test_a_session_of_ours_gives_its_number_as_the_source():
    session = SessionFactory()
    told(session=session)
    assert narratives.search("backups", ALL)[0].source == f"session-{session.pk}-segment-1"


def test_other_forms_of_a_word_are_found():
    row = told("The migrations were failing on the replicas.")
    assert found("migration fails") == [row.pk]


def test_a_run_without_blanks_is_found_whole_and_a_question_finds_not_what_shares_its_form_alone():
    row = told("备份失败 at night.")
    told("It is late.")
    assert found("备份失败") == [row.pk]
    assert found("what is it?") == found("is it?") == []


def test_the_index_follows_every_change():
    row = told()
    Segment.objects.filter(pk=row.pk).update(narrative="Bob asked about the certificate.")
    assert (found(), found("certificates")) == ([], [row.pk])
    row.delete()
    assert found("certificates") == []


@pytest.mark.django_db(transaction=True)
def test_a_missing_index_is_made_again_and_filled():
    row = told()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("DROP TRIGGER segment_words_on_insert")
        else:
            cursor.execute("DROP INDEX segments_words")
    late = told("The backups are stored in the east.")
    narratives.keep(connection)
    narratives.keep(connection)
    assert set(found()) == {row.pk, late.pk}


def test_a_project_sees_its_own_sessions_alone():
    shop, other = ProjectFactory(), ProjectFactory()
    ours, theirs, nobodys = told(project=shop), told(project=other), told()
    assert found(filters=Filters(shop.pk, ANY_AGENT)) == [ours.pk]
    assert found(filters=Filters(None, ANY_AGENT)) == [nobodys.pk]
    assert set(found()) == {ours.pk, theirs.pk, nobodys.pk}


def test_an_agent_sees_its_own_sessions_and_those_of_no_agent():
    ours, theirs, nobodys = told(agent="qa"), told(agent="dev"), told()
    assert set(found(filters=Filters(ANY_PROJECT, "qa"))) == {ours.pk, nobodys.pk}
    assert found(filters=Filters(ANY_PROJECT, None)) == [nobodys.pk]
    assert theirs.pk not in found(filters=Filters(ANY_PROJECT, "qa"))


@pytest.mark.parametrize(
    "query", ["", "  ", "the of", '"', "AND", "NEAR(a b)", "narrative:x", "a*", "-x", "(", "%", "\\", "🔴"]
)
def test_no_query_is_one_of_the_index(query):
    told()
    found(query)


def test_no_more_than_asked_for():
    for _ in range(12):
        told()
    assert len(found()) == narratives.MOST


def test_no_prompt_is_told_a_narrative():
    told("The billing database is upgraded by hand.")
    assert select_knowledge("Upgrade the billing database", None, None, at=AT).text == ""


def test_the_same_number_of_queries_with_ten_rows_and_one(django_assert_num_queries):
    told()
    with django_assert_num_queries(2):
        found()
    for _ in range(9):
        told()
    with django_assert_num_queries(2):
        found()
