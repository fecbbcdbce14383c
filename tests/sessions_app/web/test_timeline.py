"""The timeline on a session's page: its head, its errors, its folds, its size, its poll."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import LogEntry, Session, Status
from tests.sessions_app.log.test_timeline import START, Log, long_log
from tests.sessions_app.people import HTMX, person
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


def ended(**fields) -> Session:
    fields = {"status": Status.FAILED, "started_at": START, "ended_at": START + timedelta(seconds=600), **fields}
    return SessionFactory(**fields)


def timeline_of(client, address: str) -> str:
    html = client.get(address).content.decode()
    return html.split('<section class="panel" id="timeline"')[1].split("</section>")[0]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def a_log(session: Session) -> None:
    log = Log(session)
    log.add("text", 3, "Looks at <b>the lock</b>", 1, tokens=5210, cost_usd=0.021)
    use = log.add("tool_use", 4, "Bash: restic check <i>", 1)
    log.add("tool_result", 48, "Error: Exit code 1", 1, call=use, is_error=True)
    log.add("text", 60, "Waits", 2)
    log.add("tool_result", 130, "x", 2, call=log.add("tool_use", 61, "Bash: sleep 60", 2))
    log.save()


def test_each_turn_and_call_has_a_row_with_its_numbers_and_a_link_to_its_line(viewer):
    session = ended()
    a_log(session)
    html = timeline_of(viewer, f"/sessions/{session.pk}")
    assert "Timeline 2 turns, 2 calls, 1 error All Errors 1" in words(html)
    assert "1 Looks at &lt;b&gt;the lock&lt;/b&gt; 0.0 s 48 s 5,210 $0.021" in words(html)
    assert "restic check &lt;i&gt; 4.0 s 44 s Bash exit 1" in words(html)
    assert 'href="?line=2#line-2"' in html
    assert html.count('class="f-hatch"') == 1
    assert html.count('<tr class="call call-0 is-bad">') == 1
    assert "style=" not in html


def test_the_errors_are_shown_alone_by_the_address(viewer):
    session = ended()
    a_log(session)
    html = timeline_of(viewer, f"/sessions/{session.pk}?timeline=errors")
    assert html.count("<tr") == 2  # with the head
    assert "1 restic check" in words(html)
    assert 'id="timeline-errors" href="/sessions/' in html
    assert re.search(r'id="timeline-errors"[^>]*aria-current="true"', html)


def test_a_session_without_known_turns_says_so(viewer):
    session = ended()
    assert "The log entries were pruned" in timeline_of(viewer, f"/sessions/{session.pk}")
    LogEntry.objects.create(session=session, seq=1, at=START, kind="text", text="x", offset=0)
    assert "No timings of turns were stored for this session." in timeline_of(viewer, f"/sessions/{session.pk}")
    queued = SessionFactory(status=Status.QUEUED)
    assert "No turns yet." in timeline_of(viewer, f"/sessions/{queued.pk}")


def test_a_long_stretch_is_folded_below_details_that_need_no_script(viewer):
    session = ended()
    long_log(session, 40)
    html = timeline_of(viewer, f"/sessions/{session.pk}")
    assert "7 to 37 31 more turns, 3 errors" in words(html)
    assert '<details id="turns-7">' in html
    folded = html.split('<tbody class="folded-rows">')[1].split("</tbody>")[0]
    assert folded.count('class="turn"') == 31


def test_a_session_of_five_thousand_calls_is_a_small_page_with_few_queries(viewer):
    small, big = ended(), ended()
    long_log(small, 10)
    long_log(big, 5000)
    sizes = {}
    for session in (small, big):
        viewer.get(f"/sessions/{session.pk}")
        with CaptureQueriesContext(connection) as queries:
            html = timeline_of(viewer, f"/sessions/{session.pk}")
        sizes[session] = (len(html), len(queries))
    assert sizes[big][0] < 200_000
    assert sizes[big][1] <= sizes[small][1] + 6
    more = re.search(r'href="(/sessions/\d+\?start=\d+)#timeline"', html)
    assert more
    assert "From the first turn" in timeline_of(viewer, more[1])


def test_the_poll_sends_the_timeline_when_it_changed_and_keeps_what_was_chosen(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=datetime.now(UTC) - timedelta(minutes=1))
    log = Log(session)
    use = log.add("tool_use", 1, "Bash: sleep 90", 1)
    log.save()
    html = viewer.get(f"/sessions/{session.pk}").content.decode()
    assert "running" in words(timeline_of(viewer, f"/sessions/{session.pk}"))
    poll = re.search(r'id="session-poll"[^>]* hx-get="([^"]+)"', html)[1].replace("&amp;", "&")
    assert 'hx-include="#tab-shown, .timeline-place"' in html
    assert viewer.get(poll, headers=HTMX).status_code == 204
    LogEntry.objects.create(
        session=session, seq=2, at=START, kind="tool_result", text="Error: x", offset=0, turn=1, call=use, is_error=True
    )
    Session.objects.filter(pk=session.pk).update(ingest_offset=100)
    answer = viewer.get(f"{poll}&timeline=errors", headers=HTMX).content.decode()
    assert '<div id="piece-timeline" hx-swap-oob="true">' in answer
    assert re.search(r'id="timeline-errors"[^>]*aria-current="true"', answer)
