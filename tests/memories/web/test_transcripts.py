"""The pages of observed transcripts: the list, one of them with its stages, segments and facts, sending one again."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import (
    ClassifiedBy,
    Exposure,
    FactOutcome,
    ModelCall,
    PartState,
    Priority,
    StageName,
    StageState,
    Verdict,
)
from memories.observe.pipeline import STAGES
from tests.sessions_app.people import person
from tests.support.factories import (
    FactFactory,
    MemoryFactory,
    PartFactory,
    ProjectFactory,
    SegmentFactory,
    SessionFactory,
    StageFactory,
    TranscriptFactory,
)

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert(1)</script> <img src=x onerror="alert(2)">'


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


@pytest.fixture
def operating(client):
    client.force_login(person("operator"))
    return client


def words_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def shown(client, query=""):
    """The ids of the transcripts that the list shows."""
    html = client.get(f"/learning-log?{query}").content.decode()
    return [int(pk) for pk in re.findall(r'<tr id="transcript-(\d+)"', html)]


def part_with_stages(*, at=None, stage=StageState.DONE, problem="", not_before=None, **part):
    """A part whose stage `at` is in the state `stage`; the stages before it are done, those after it wait."""
    made = PartFactory(**part)
    before = True
    for name in STAGES:
        before = before and name != at
        here = {"state": stage, "problem": problem, "not_before": not_before, "attempts": 3} if name == at else {}
        StageFactory(part=made, name=name, **(here or {"state": StageState.DONE if before else StageState.WAITING}))
    return made


def observed(**transcript):
    """A transcript with one part, a segment, and a fact of each outcome."""
    call = ModelCall.objects.create(
        role="observer", backend="claude", model="haiku", prompt_hash="a", cost_usd="0.0041"
    )
    part = part_with_stages(transcript=TranscriptFactory(**transcript), state=PartState.DONE, call=call)
    segment = SegmentFactory(part=part, narrative="The backup was moved to beta. Alpha had run out of space.")
    FactFactory(segment=segment, outcome=FactOutcome.CREATED, memory=MemoryFactory(), verdict="allow")
    FactFactory(segment=segment, outcome=FactOutcome.MERGED, memory=MemoryFactory(), verdict="allow")
    held = MemoryFactory(verdict=Verdict.HOLD)
    FactFactory(segment=segment, outcome=FactOutcome.HELD, memory=held, verdict="hold", reason="it holds a command")
    FactFactory(segment=segment, outcome=FactOutcome.DISCARDED, verdict="discard", reason="transient state")
    return part.transcript


# -- the list ------------------------------------------------------------------------------------------------------


def test_a_row_says_what_happened_and_how_many_facts_were_stored_held_and_discarded(viewer):
    session = SessionFactory()
    row = observed(session=session, agent="watch", project=ProjectFactory(slug="shop"))
    html = viewer.get("/learning-log").content.decode()
    text = words_of(html[html.index("<tbody ") : html.index("</tbody>")])
    assert text.startswith("The backup was moved to beta watch shop session")
    assert "1 part 2 stored 1 held 1 discarded $0.0041" in text
    assert f'href="/learning-log/{row.pk}"' in html
    assert f'href="/sessions/{session.pk}"' in html


def test_the_list_filters_by_project_way_state_exposure_agent_and_words(viewer):
    done = observed(project=ProjectFactory(slug="shop"), agent="watch", arrived_by="session", folder="/srv/shop")
    waiting = part_with_stages(at=StageName.CALL, stage=StageState.WAITING).transcript
    failed = part_with_stages(
        at=StageName.PARSE,
        stage=StageState.FAILED,
        transcript__exposure=Exposure.OUTSIDE,
        transcript__folder="/srv/blog",
        state=PartState.FAILED,
    )
    PartFactory(transcript=failed.transcript)  # it waits behind the failed one
    for query, wanted in (
        ("project=shop", done.pk),
        ("agent=watch", done.pk),
        ("arrived_by=session", done.pk),
        ("state=done", done.pk),
        ("state=waiting", waiting.pk),
        ("state=failed", failed.transcript_id),
        ("exposure=outside", failed.transcript_id),
        ("text=BETA+space", done.pk),
        ("text=blog", failed.transcript_id),
    ):
        assert shown(viewer, query) == [wanted], query
    assert shown(viewer, "state=odd") == []
    assert shown(viewer) == [failed.transcript_id, waiting.pk, done.pk]


def test_the_export_writes_the_shown_columns_of_what_matches(viewer):
    observed(installation="laptop")
    lines = list(csv.DictReader(io.StringIO(viewer.get("/learning-log?format=csv").getvalue().decode())))
    assert [(line["who"], line["stored"], line["held"], line["discarded"]) for line in lines] == [
        ("laptop", "2", "1", "1")
    ]


def test_the_number_of_queries_depends_neither_on_the_rows_nor_on_their_facts(viewer):
    for _ in range(10):
        observed(project=ProjectFactory())
    viewer.get("/learning-log")
    with CaptureQueriesContext(connection) as few:
        viewer.get("/learning-log")
    for _ in range(10):
        observed(project=ProjectFactory())
    with CaptureQueriesContext(connection) as many:
        viewer.get("/learning-log")
    assert len(few) == len(many)


# -- one transcript --------------------------------------------------------------------------------------------------


def test_a_transcript_shows_its_segments_and_each_fact_with_verdict_reason_category_and_source(viewer):
    row = observed()
    fact = row.segments.get().facts.get(outcome=FactOutcome.HELD)
    fact.priority, fact.classified_by, fact.category_confidence = Priority.RED, ClassifiedBy.OBSERVER, 0.9
    fact.turn, fact.excerpt, fact.said_gate = 12, "No, put it on beta.", "allow"
    fact.save()
    html = viewer.get(f"/learning-log/{row.pk}").content.decode()
    text = words_of(html[html.index(f'id="fact-{fact.pk}"') :].split("</li>")[0])
    assert "held for review: it holds a command · minor note · operations (by the observer, 0.90)" in text
    assert "Source, turn 12" in text
    assert "No, put it on beta." in text
    assert "The model's word: allow." in text
    assert f'href="/memories/{fact.memory_id}"' in html
    assert "transient state" in html
    assert "merged into a known memory" in html
    assert "Stored 2 1 merged into known ones" in words_of(html)


def test_a_category_that_nothing_chose_is_there_by_default(viewer):
    fact = FactFactory(classified_by=ClassifiedBy.KEYWORDS, category_confidence=0.0)
    html = viewer.get(f"/learning-log/{fact.segment.transcript_id}").content.decode()
    assert "operations (by default)" in words_of(html)


def test_whatever_a_transcript_or_a_model_says_is_escaped(viewer):
    part = part_with_stages(
        at=StageName.PARSE,
        stage=StageState.FAILED,
        problem=HOSTILE,
        transcript__folder=HOSTILE,
        transcript__installation=HOSTILE[:40],
        transcript__exposed_to=[HOSTILE],
        answer=HOSTILE,
        unread=[HOSTILE],
        removed={HOSTILE: 1},
    )
    segment = SegmentFactory(part=part, narrative=HOSTILE)
    FactFactory(segment=segment, text=HOSTILE, reason=HOSTILE, excerpt=HOSTILE, said_category=HOSTILE[:60])
    for address in ("/learning-log", f"/learning-log/{part.transcript_id}"):
        html = viewer.get(address).content.decode()
        assert "<script>alert" not in html
        assert "<img src=x" not in html


def test_a_waiting_part_says_which_stage_waits_for_what_and_until_when(viewer):
    later = timezone.now() + timedelta(hours=5)
    problem = "The budget of the observer is spent."
    part = part_with_stages(at=StageName.CALL, stage=StageState.WAITING, problem=problem, not_before=later)
    text = words_of(viewer.get(f"/learning-log/{part.transcript_id}").content.decode())
    assert f"Call is tried again in 4 hours . {problem}" in text
    assert "Try again" not in text


def test_the_page_of_a_waiting_transcript_follows_its_stages_until_they_are_done(viewer):
    part = part_with_stages(at=StageName.CALL, stage=StageState.WAITING)
    address = f"/learning-log/{part.transcript_id}"

    def poll(html):
        found = re.search(rf'hx-get="({address}/live[^"]+)"', html)
        return found and unescape(found[1])

    asks = poll(viewer.get(address).content.decode())
    assert viewer.get(asks).status_code == 204
    part.stages.filter(name="call").update(state=StageState.RUNNING, claimed_at=timezone.now())
    html = viewer.get(asks).content.decode()
    assert "Call has been running for" in words_of(html)
    assert viewer.get(poll(html)).status_code == 204
    part.stages.update(state=StageState.DONE)
    part.state = PartState.DONE
    part.save()
    html = viewer.get(poll(html)).content.decode()
    assert 'hx-swap-oob="true"' in html
    assert "It holds nothing that is worth remembering." in html
    assert poll(html) is None


def test_a_failed_part_is_sent_again_by_an_operator_from_the_stage_that_failed(operating):
    part = part_with_stages(
        at=StageName.PARSE, stage=StageState.FAILED, state=PartState.FAILED, problem="no segment was found"
    )
    address = f"/learning-log/{part.transcript_id}"
    assert "Parse failed after 3 attempts. no segment was found" in words_of(operating.get(address).content.decode())
    said = operating.post(f"{address}/parts/1/again", follow=True).content.decode()
    assert "Part 1 waits again" in said
    part.refresh_from_db()
    states = dict(part.stages.values_list("name", "state"))
    assert (part.state, states["call"], states["parse"]) == ("waiting", "done", "waiting")
    assert "This part has not failed" in operating.post(f"{address}/parts/1/again", follow=True).content.decode()


def test_a_part_whose_answer_cannot_be_read_is_a_state_of_its_own_and_is_observed_again(operating):
    why = "the observer's answer cannot be read: the answer is empty"
    until = timezone.now() + timedelta(hours=4, minutes=1)
    part = part_with_stages(
        at=StageName.CALL, state=PartState.UNREADABLE, problem=why, not_before=until, stage="waiting"
    )
    other, address = PartFactory(state=PartState.DONE), f"/learning-log/{part.transcript_id}"
    assert shown(operating, "state=unreadable") == [part.transcript_id]
    assert shown(operating, "state=done") == [other.transcript_id]
    assert (shown(operating, "state=waiting"), shown(operating, "state=failed")) == ([], [])
    assert "The observer's answer could not be read" in words_of(operating.get("/learning-log").content.decode())
    text = words_of(operating.get(address).content.decode())
    assert f"Call is tried again in 4 hours . {why} Observe again" in text
    assert "Nothing to keep" not in text and "nothing that is worth remembering" not in text
    said = operating.post(f"{address}/parts/1/again", follow=True).content.decode()
    assert "Part 1 waits again" in said
    part.refresh_from_db()
    assert (part.state, part.stages.get(name="call").not_before) == (PartState.WAITING, None)


def test_a_viewer_is_not_offered_to_send_a_part_again_and_may_not(viewer):
    part = part_with_stages(at=StageName.PARSE, stage=StageState.FAILED, state=PartState.FAILED)
    address = f"/learning-log/{part.transcript_id}"
    assert "Try again" not in viewer.get(address).content.decode()
    assert viewer.post(f"{address}/parts/1/again").status_code == 403
    part.refresh_from_db()
    assert part.state == PartState.FAILED


def test_the_parts_are_paged_and_their_number_of_queries_does_not_grow(viewer):
    few, many = TranscriptFactory(), TranscriptFactory()
    for transcript, count in ((few, 3), (many, 12)):
        for _ in range(count):
            part = part_with_stages(transcript=transcript)
            FactFactory.create_batch(2, segment=SegmentFactory(part=part), memory=MemoryFactory())
    viewer.get(f"/learning-log/{few.pk}")
    with CaptureQueriesContext(connection) as first:
        viewer.get(f"/learning-log/{few.pk}")
    with CaptureQueriesContext(connection) as second:
        html = viewer.get(f"/learning-log/{many.pk}").content.decode()
    assert len(first) == len(second)
    assert re.findall(r'id="part-(\d+)"', html) == [str(number) for number in range(1, 11)]
    assert f'href="/learning-log/{many.pk}?part=11"' in html
    html = viewer.get(f"/learning-log/{many.pk}?part=11").content.decode()
    assert re.findall(r'id="part-(\d+)"', html) == ["11", "12"]


def test_what_is_not_there_is_a_404_and_who_may_not_see_it_is_refused(client, viewer):
    assert viewer.get("/learning-log/9999999").status_code == 404
    assert viewer.get("/learning-log/1?part=x").status_code == 404
    row = TranscriptFactory()
    assert viewer.get(f"/learning-log/{row.pk}?part=99999999999").status_code == 200
    client.logout()
    assert client.get("/learning-log").status_code == 302


# -- on other pages --------------------------------------------------------------------------------------------------


def test_a_session_that_was_observed_has_a_tab_with_its_segments_and_facts(viewer):
    session = SessionFactory()
    assert "tab-observed" not in viewer.get(f"/sessions/{session.pk}").content.decode()
    row = observed(session=session)
    html = viewer.get(f"/sessions/{session.pk}?tab=observed").content.decode()
    assert 'id="tab-observed"' in html
    text = words_of(html.split('id="tabs"')[1].split('id="piece-timeline"')[0])
    assert "Observed 4" in text
    assert f"Observed: 2 stored, 1 held, 1 discarded. Transcript {row.pk}" in text
    assert "The backup was moved to beta. Alpha had run out of space." in text
    assert "held for review: it holds a command" in text


def test_the_tab_costs_as_many_queries_for_many_facts_as_for_few(viewer):
    few, many = SessionFactory(), SessionFactory()
    observed(session=few)
    for _ in range(4):
        observed(session=many)
    viewer.get(f"/sessions/{few.pk}?tab=observed")
    with CaptureQueriesContext(connection) as first:
        viewer.get(f"/sessions/{few.pk}?tab=observed")
    with CaptureQueriesContext(connection) as second:
        viewer.get(f"/sessions/{many.pk}?tab=observed")
    assert len(first) == len(second)


def test_a_project_leads_to_its_transcripts(viewer):
    project = ProjectFactory(slug="shop")
    html = viewer.get(f"/projects/{project.slug}?tab=sessions").content.decode()
    assert 'href="/learning-log?project=shop"' in html
