"""`/inbox`: the source of what is held, the nearest known memory, a text of one's own, and what the gate discarded."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories import inbox
from memories.lifecycle import verbs
from memories.models import FactOutcome, GateDecision, Label, Memory, Verdict
from sessions_app.models import LogEntry
from tests.memories.people import HTMX, signed_in
from tests.support.factories import FactFactory, GateDecisionFactory, MemoryFactory, SegmentFactory, SessionFactory

pytestmark = pytest.mark.django_db

TEXT = "The nightly backup of the shop runs on host beta at 03:00"


@pytest.fixture
def operating(db):
    return signed_in("operator", "ann")


@pytest.fixture
def held():
    return MemoryFactory(observation=TEXT, verdict=Verdict.HOLD, verdict_reason="it holds a command")


@pytest.fixture
def discards():
    return [
        GateDecisionFactory(text=f"{TEXT} on day {n}", category="operations", words="it describes a passing state")
        for n in range(3)
    ]


def words_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def pick_of(kind, pk):
    return inbox.KINDS[kind].item(pk)["row"].pick


def decide(client, decision, *picks, **more):
    answer = client.post("/inbox/decide", {"decision": decision, "pick": list(picks), **more}, headers=HTMX)
    return answer.content.decode()


def undo_of(html):
    return html.partition('hx-post="/inbox/undo/')[2].partition('"')[0]


# -- held ----------------------------------------------------------------------------------------------------------


def test_a_held_fact_stands_beside_the_turn_that_it_comes_from(operating, held):
    segment = SegmentFactory(narrative="The backup was moved to beta.")
    fact = FactFactory(segment=segment, memory=held, outcome=FactOutcome.HELD, turn=12, excerpt="No, on <i>beta</i>!")
    GateDecisionFactory(memory=held, verdict="hold", said_gate="allow", said_confidence=0.92, text="")
    html = operating.get(f"/inbox?view=held&item=held-{held.pk}").content.decode()
    text = words_of(html)
    assert "Source, turn 12 No, on <i>beta</i>! The backup was moved to beta." in text
    assert f'href="/learning-log/{segment.transcript_id}?part=1#fact-{fact.pk}"' in html
    assert "Why it holds a command The model said allow, 0.92" in text
    assert "<i>beta" not in html


def test_a_held_marker_stands_beside_the_line_of_the_log_that_says_it(operating, held):
    held.session = SessionFactory()
    held.save()
    said = f"I looked at the cron table.\n[MEMORY:timing:shop] {TEXT}"
    LogEntry.objects.create(session=held.session, seq=7, at=timezone.now(), kind="text", text=said, offset=1)
    html = operating.get(f"/inbox?view=held&item=held-{held.pk}").content.decode()
    assert f"Source, line 7 I looked at the cron table. [MEMORY:timing:shop] {TEXT} Line 7 of the log" in words_of(html)
    assert f'href="/sessions/{held.session_id}/log?line=7#line-7"' in html


def test_what_a_fact_was_compared_with_is_shown_as_a_difference_in_words(operating, held):
    known = MemoryFactory(observation=TEXT.replace("beta", "alpha"))
    FactFactory(memory=held, match={"memory": known.pk, "relation": "contradicts", "score": 0.9})
    html = operating.get(f"/inbox?view=held&item=held-{held.pk}").content.decode()
    assert "<del>alpha</del>" in html
    assert "<ins>beta</ins>" in html
    assert "Nearest known memory contradicts" in words_of(html)


def test_the_nearest_memory_of_a_marker_is_loaded_after_the_item_or_is_a_page(operating, held):
    known = MemoryFactory(observation=TEXT.replace("03:00", "04:00"))
    html = operating.get(f"/inbox?view=held&item=held-{held.pk}").content.decode()
    address = f"/inbox/nearest/{held.pk}"
    assert f'hx-get="{address}"' in html
    for headers in (HTMX, {}):
        html = operating.get(address, headers=headers).content.decode()
        assert f'href="/memories/{known.pk}"' in html
        assert "<del>04</del>" in html
        assert ("<html" in html) is (not headers)
    alone = MemoryFactory(observation="Jellyfin fills its cache within a week", service=None, verdict=Verdict.HOLD)
    assert "No known memory is similar." in operating.get(f"/inbox/nearest/{alone.pk}", headers=HTMX).content.decode()
    assert operating.get("/inbox/nearest/999999").status_code == 404


def test_a_held_memory_is_approved_with_a_text_of_ones_own_and_taken_back_whole(operating, held):
    GateDecisionFactory(memory=held, verdict="hold", text="")
    own = "The nightly backup runs on beta"
    html = decide(operating, "held.approve", pick_of("held", held.pk), observation=f"  {own} ")
    assert "1 approved." in html
    held.refresh_from_db()
    assert (held.observation, held.verdict) == (own, Verdict.ALLOW)
    assert held.gate_decisions.get().label == Label.EDITED
    said = operating.post(f"/inbox/undo/{undo_of(html)}", headers=HTMX).content.decode()
    assert "1 memory is as it was before." in said
    held.refresh_from_db()
    assert (held.observation, held.verdict) == (TEXT, Verdict.HOLD)


def test_an_unchanged_text_is_a_plain_approval(operating, held):
    decide(operating, "held.approve", pick_of("held", held.pk), observation=TEXT)
    held.refresh_from_db()
    assert [change.kind for change in held.changes.all()] == ["approved"]


def test_a_text_of_ones_own_for_what_changed_meanwhile_is_refused_and_so_is_a_late_undo(operating, held):
    seen = pick_of("held", held.pk)
    verbs.edit(held.pk, by="agent:x", confidence=0.9)
    said = decide(operating, "held.approve", seen, observation="Mine")
    assert f"Memory {held.pk} was edited by agent:x meanwhile." in said
    html = decide(operating, "held.approve", pick_of("held", held.pk), observation="The backup runs on beta")
    verbs.edit(held.pk, by="bob", confidence=0.5)
    said = operating.post(f"/inbox/undo/{undo_of(html)}", headers=HTMX).content.decode()
    assert "Nothing was taken back." in said
    held.refresh_from_db()
    assert held.observation == "The backup runs on beta"


def test_a_text_that_cannot_be_stored_is_refused_and_changes_nothing(operating, held):
    assert (
        "approved" not in decide(operating, "held.approve", pick_of("held", held.pk), observation="  ").split("<h1>")[0]
    )
    held.refresh_from_db()
    assert (held.observation, held.verdict) == (TEXT, Verdict.HOLD)


# -- discarded ---------------------------------------------------------------------------------------------------------


def test_discards_are_a_view_of_their_own_and_no_item_that_waits(operating, discards):
    GateDecisionFactory(text="", label=Label.EDITED)  # its text is gone
    html = operating.get("/inbox").content.decode()
    assert "Nothing waits for a person." in html
    assert re.search(r"Discarded <b>3</b>", html)
    assert "side-count" not in html
    html = operating.get(f"/inbox?view=discarded&item=discarded-{discards[0].pk}").content.decode()
    assert f"{TEXT} on day 0" in html
    assert "Why it describes a passing state" in words_of(html)


def test_a_discard_is_allowed_becomes_an_approved_memory_and_is_discarded_again(operating, discards):
    html = decide(operating, "discarded.allow", pick_of("discarded", discards[0].pk), view="discarded")
    assert "1 allowed." in html
    memory = Memory.objects.get()
    assert (memory.observation, memory.verdict, memory.active) == (f"{TEXT} on day 0", Verdict.ALLOW, True)
    discards[0].refresh_from_db()
    assert (discards[0].label, discards[0].labelled_by) == (Label.RELEASED, "ann")
    assert re.search(r"Discarded <b>2</b>", html)
    said = operating.post(f"/inbox/undo/{undo_of(html)}", headers=HTMX).content.decode()
    assert "It is discarded as before." in said
    memory.refresh_from_db()
    assert not memory.active


def test_a_discard_is_allowed_with_a_text_of_ones_own(operating, discards):
    own = "The nightly backup of the shop runs on beta"
    decide(operating, "discarded.allow", pick_of("discarded", discards[0].pk), observation=own)
    assert Memory.objects.get().observation == own
    discards[0].refresh_from_db()
    assert discards[0].label == Label.EDITED


def test_many_are_kept_discarded_at_once_and_come_back_at_once(operating, discards):
    html = decide(operating, "discarded.keep", *(pick_of("discarded", one.pk) for one in discards), view="discarded")
    assert "3 kept discarded." in html
    assert "The gate discarded nothing in the last 14 days" in html
    assert set(GateDecision.objects.values_list("label", flat=True)) == {Label.DISCARDED}
    assert "3 are discarded as before." in operating.post(f"/inbox/undo/{undo_of(html)}", headers=HTMX).content.decode()
    assert inbox.counts(["discarded"]) == {"discarded": 3}


def test_who_comes_second_to_a_discard_changes_nothing(operating, discards):
    seen = pick_of("discarded", discards[0].pk)
    decide(operating, "discarded.keep", seen)
    assert f"Somebody decided about discard {discards[0].pk} meanwhile." in decide(operating, "discarded.keep", seen)
    decide(operating, "discarded.allow", pick_of("discarded", discards[1].pk))
    for one in discards[:2]:
        assert 'class="warn"' in decide(operating, "discarded.allow", f"discarded-{one.pk}-0")
    assert Memory.objects.count() == 1


def test_the_discards_of_a_fact_show_its_source(operating):
    fact = FactFactory(outcome=FactOutcome.DISCARDED, turn=3, excerpt="Looking at the file now")
    decision = GateDecisionFactory(fact=fact, text="Looking at the file", words="it narrates what was done")
    html = operating.get(f"/inbox?view=discarded&item=discarded-{decision.pk}").content.decode()
    assert "Source, turn 3 Looking at the file now" in words_of(html)


def test_a_viewer_sees_discards_and_may_not_allow_them(discards):
    client = signed_in("viewer")
    assert "Only operators can decide." in client.get("/inbox?view=discarded").content.decode()
    answer = client.post("/inbox/decide", {"decision": "discarded.allow", "pick": f"discarded-{discards[0].pk}-0"})
    assert answer.status_code == 403
    assert not Memory.objects.exists()


def test_the_queue_costs_as_many_queries_for_twenty_as_for_ten(operating):
    for kind, make in (("discarded", GateDecisionFactory), ("held", lambda: MemoryFactory(verdict=Verdict.HOLD))):
        for _ in range(10):
            make()
        operating.get(f"/inbox?view={kind}")
        with CaptureQueriesContext(connection) as few:
            operating.get(f"/inbox?view={kind}")
        for _ in range(10):
            make()
        with CaptureQueriesContext(connection) as many:
            operating.get(f"/inbox?view={kind}")
        assert len(few) == len(many), kind
