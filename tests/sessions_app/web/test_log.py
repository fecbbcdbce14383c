"""`/sessions/{id}/log`: no line lost, none twice, whenever it is asked for; its pages; the raw log."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.log import entries
from sessions_app.log.entries import AROUND, PAGE, PAGE_BYTES
from sessions_app.models import LogEntry, Session, Status
from sessions_app.web.log import MOST_PASSED
from tests.sessions_app.people import HTMX, person
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


@pytest.fixture
def data_dir(tmp_path, settings):
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    settings.CLAUDEOPS_DATA_DIR.mkdir()
    return settings.CLAUDEOPS_DATA_DIR


def says(session: Session, *texts: str, kind: str = "text", **fields: Any) -> None:
    last = LogEntry.objects.filter(session=session).count()
    now = timezone.now()
    LogEntry.objects.bulk_create(
        LogEntry(session=session, seq=last + number, at=now, kind=kind, text=words, offset=0, **fields)
        for number, words in enumerate(texts, start=1)
    )


def running(**fields) -> Session:
    return SessionFactory(status=Status.RUNNING, started_at=timezone.now(), **fields)


def seqs(html: str) -> list[int]:
    return [int(number) for number in re.findall(r'id="line-(\d+)"', html)]


def next_of(html: str) -> str | None:
    found = re.search(r'id="log-next" class="log-next" hx-get="([^"]+)"', html)
    return found and found[1]


def gap_of(html: str) -> str | None:
    found = re.search(r'class="log-more"><a href="[^"]+" hx-get="([^"]+)"', html)
    return found and found[1].replace("&amp;", "&")


def html_of(client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


@dataclass
class Browser:
    """What htmx does with a log: swaps the poller for the answer, and a link for what it leads to."""

    client: Client
    items: list[int | str] = field(default_factory=list)
    poll: str | None = None

    def open(self, session: Session) -> None:
        self.items, self.poll = self._read(html_of(self.client, f"/sessions/{session.pk}"))

    def tick(self) -> None:
        """One poll; nothing happens when there is no poller any more, or nothing to say."""
        if self.poll is None:
            return
        response = self.client.get(self.poll, headers=HTMX)
        if response.status_code == 200:
            items, self.poll = self._read(response.content.decode())
            self.items += items

    def show_all(self) -> list[int]:
        """Follow every link to lines that were left out."""
        while links := [item for item in self.items if isinstance(item, str)]:
            place = self.items.index(links[0])
            items, _poll = self._read(html_of(self.client, links[0], **HTMX))
            self.items[place : place + 1] = items
        return [item for item in self.items if isinstance(item, int)]

    @staticmethod
    def _read(html: str) -> tuple[list[int | str], str | None]:
        found = re.findall(r'id="line-(\d+)"|class="log-more"><a href="[^"]+" hx-get="([^"]+)"', html)
        items = [int(seq) if seq else link.replace("&amp;", "&") for seq, link in found]
        return items, next_of(html)


# -- who ---------------------------------------------------------------------------------------------------------


def test_signed_out_the_log_is_not_shown_and_not_given_away(client):
    session = running()
    assert client.get(f"/sessions/{session.pk}/log").status_code == 302
    assert client.get(f"/sessions/{session.pk}/log/raw").status_code == 302
    assert client.get(f"/sessions/{session.pk}/log?after=0", headers=HTMX).status_code == 403


def test_without_the_permission_there_is_neither_log_nor_raw_log(client, django_user_model):
    session = running()
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    for more in ("log", "log?after=0", "log/raw"):
        assert client.get(f"/sessions/{session.pk}/{more}").status_code == 403


# -- following ---------------------------------------------------------------------------------------------------


def test_an_answer_carries_the_new_lines_and_the_next_poller(viewer):
    session = running()
    says(session, "One.", "Two.")
    poll = next_of(html_of(viewer, f"/sessions/{session.pk}"))
    assert poll == f"/sessions/{session.pk}/log?after=2"
    assert viewer.get(poll, headers=HTMX).status_code == 204
    says(session, "Three.")
    html = html_of(viewer, poll, **HTMX)
    assert seqs(html) == [3]
    assert next_of(html) == f"/sessions/{session.pk}/log?after=3"
    assert seqs(html_of(viewer, poll, **HTMX)) == [3]  # asked again with the same cursor: the same answer


def test_the_polling_ends_when_the_session_has_ended_and_every_line_was_shown(viewer):
    session = running()
    poll = next_of(html_of(viewer, f"/sessions/{session.pk}"))
    says(session, "The last one.")
    Session.objects.filter(pk=session.pk).update(status=Status.COMPLETED)
    html = html_of(viewer, poll, **HTMX)
    assert seqs(html) == [1]
    assert next_of(html) is None
    assert "hx-trigger" not in html
    assert "data-ended" in html
    assert "End of log. Session completed." in html


def test_an_ended_session_without_new_lines_ends_the_polling_too(viewer):
    session = running()
    poll = next_of(html_of(viewer, f"/sessions/{session.pk}"))
    Session.objects.filter(pk=session.pk).update(status=Status.FAILED)
    html = html_of(viewer, poll, **HTMX)
    assert (seqs(html), next_of(html)) == ([], None)


def test_the_end_is_read_before_the_lines(viewer):
    """A session that ends, with its last line, between two queries of an answer must not lose that line."""
    session = running()
    poll = next_of(html_of(viewer, f"/sessions/{session.pk}"))
    with CaptureQueriesContext(connection) as queries:
        viewer.get(poll, headers=HTMX)
    about = [
        "row" if 'FROM "sessions"' in query["sql"] else "lines"
        for query in queries
        if 'FROM "sessions"' in query["sql"] or '"session_log_entries"' in query["sql"]
    ]
    assert about == ["row", "lines"]


def test_a_reader_who_was_away_gets_the_newest_page_and_a_link_to_what_is_between(viewer):
    session = running()
    says(session, "One.")
    poll = next_of(html_of(viewer, f"/sessions/{session.pk}"))
    says(session, *(f"Line {number}" for number in range(2 * PAGE + 50)))
    html = html_of(viewer, poll, **HTMX)
    assert seqs(html) == list(range(PAGE + 52, 2 * PAGE + 52))
    assert f"Show the {PAGE + 50} lines between" in html
    between = html_of(viewer, gap_of(html), **HTMX)
    assert seqs(between) == list(range(52, PAGE + 52))
    rest = html_of(viewer, gap_of(between), **HTMX)
    assert seqs(rest) == list(range(2, 52))
    assert gap_of(rest) is None


SHORT = 30


@pytest.fixture
def short_pages(monkeypatch):
    """Pages of few lines: most of the time went into writing and reading lines, not into what is asked."""
    for function in (entries.newest, entries.following):
        monkeypatch.setitem(function.__kwdefaults__, "most", SHORT)


@given(
    steps=st.lists(
        st.one_of(
            st.just("poll"),
            st.just("reopen"),
            st.integers(min_value=1, max_value=SHORT // 7),
            st.just(SHORT - 1),
            st.just(SHORT + 7),
            st.just(2 * SHORT + 1),
        ),
        max_size=12,
    ),
    late=st.integers(min_value=0, max_value=SHORT + 5),
)
def test_no_line_is_lost_and_none_shown_twice_whenever_it_is_asked_for(viewer, short_pages, steps, late):
    session = running()
    browser = Browser(viewer)
    browser.open(session)
    for step in steps:
        if step == "poll":
            browser.tick()
        elif step == "reopen":
            browser.open(session)
        else:
            says(session, *["x"] * step)
    says(session, *["x"] * late)
    Session.objects.filter(pk=session.pk).update(status=Status.COMPLETED)
    for _ in range(3):
        browser.tick()
    assert browser.poll is None
    total = LogEntry.objects.filter(session=session).count()
    assert browser.show_all() == list(range(1, total + 1))


# -- pages -------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_newest_lines_first_and_earlier_ones_when_asked(viewer):
    session = SessionFactory()
    says(session, *(f"Line {number}" for number in range(PAGE + 20)))
    html = html_of(viewer, f"/sessions/{session.pk}")
    assert seqs(html) == list(range(21, PAGE + 21))
    earlier = html_of(viewer, gap_of(html), **HTMX)
    assert seqs(earlier) == list(range(1, 21))
    assert gap_of(earlier) is None


def test_without_a_script_the_log_is_read_page_by_page(viewer):
    session = SessionFactory()
    says(session, *(f"Line {number}" for number in range(2 * PAGE + 10)))
    address = f"/sessions/{session.pk}/log"
    seen: list[int] = []
    query = "?after=0"
    while query:
        html = html_of(viewer, address + query)
        assert "<main" in html
        seen += seqs(html)
        found = re.search(r'href="(\?after=\d+)" rel="next"', html)
        query = found[1] if found else ""
    assert seen == list(range(1, 2 * PAGE + 11))
    back: list[int] = []
    query = "?"
    while query:
        html = html_of(viewer, address + query)
        back = seqs(html) + back
        found = re.search(r'href="(\?before=\d+)" rel="prev"', html)
        query = found[1] if found else ""
    assert back == seen


@pytest.mark.parametrize("query", ["after=x", "after=-1", "before=0", f"after={10**30}"])
def test_a_place_that_cannot_be_read_is_refused(viewer, query):
    session = running()
    assert viewer.get(f"/sessions/{session.pk}/log?{query}").status_code == 400
    assert viewer.get(f"/sessions/{session.pk}/log?{query}", headers=HTMX).status_code == 400


def test_a_page_of_a_hundred_thousand_lines_reads_no_more_than_it_shows(viewer):
    session = running()
    says(session, *["x"] * (PAGE + 1))
    with CaptureQueriesContext(connection) as few:
        html_of(viewer, f"/sessions/{session.pk}/log")
    says(session, *["x"] * 5000)
    with CaptureQueriesContext(connection) as many:
        html_of(viewer, f"/sessions/{session.pk}/log")
    assert len(few) == len(many)
    read = [query["sql"] for query in many if '"session_log_entries"."text"' in query["sql"]]
    assert read
    assert all(f"LIMIT {PAGE + 1}" in sql for sql in read)


# -- which lines -------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(db) -> Session:
    """Ten lines: text 1, 5 and 9, calls 2 and 6, results 3 and 7 (an error), 10 is the result line (an error)."""
    session = running()
    for word in ("one", "two"):
        says(session, f"Says {word}.")
        says(session, f"Bash: run {word}", kind="tool_use")
        says(session, f"Error: {word}" if word == "two" else word, kind="tool_result", is_error=word == "two")
        says(session, "api_retry: again", kind="system")
    says(session, "100% sure_ of two and\nTWO <i>two</i>")
    says(session, "failed: error_max_turns, 2 turns, $0.1", kind="result", is_error=True)
    return session


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("", list(range(1, 11))),
        ("kind=text", [1, 5, 9]),
        ("kind=calls", [2, 6]),
        ("kind=results", [3, 7]),
        ("kind=errors", [7, 10]),
        ("q=two", [5, 6, 7, 9]),
        ("q=two&kind=text", [5, 9]),
        ("q=100%25", [9]),
        ("q=_ of", [9]),
        ("q=100_", []),
        ("q=%5C", []),
    ],
)
def test_the_log_is_restricted_by_kind_and_words_on_both_pages(viewer, mixed, query, lines):
    assert seqs(html_of(viewer, f"/sessions/{mixed.pk}?{query}")) == lines
    assert seqs(html_of(viewer, f"/sessions/{mixed.pk}/log?{query}")) == lines


def test_the_kinds_have_their_numbers_and_keep_what_is_searched_for(viewer, mixed):
    html = html_of(viewer, f"/sessions/{mixed.pk}?q=two&kind=text")
    found = re.findall(
        r'id="log-kind-\w+" href="[^"]*\?kind=(\w*)&amp;q=two#log"( aria-current="true")?>([^<]+)<', html
    )
    assert [(name, label) for name, _, label in found] == [
        ("", "All 10"),
        ("text", "Text 3"),
        ("calls", "Calls 2"),
        ("results", "Results 2"),
        ("errors", "Errors 2"),
    ]
    assert [name for name, current, _ in found if current] == ["text"]


def test_what_is_searched_for_is_marked_and_escaped(viewer, mixed):
    html = html_of(viewer, f"/sessions/{mixed.pk}?q=two")
    assert (
        'of <mark class="hit">two</mark> and\n<mark class="hit">TWO</mark> &lt;i&gt;<mark class="hit">two</mark>'
        in html
    )
    assert 'value="two"' in html
    evil = html_of(viewer, f"/sessions/{mixed.pk}?q=%3Cscript%3E")
    assert "<script>" not in evil
    assert "No lines with “&lt;script&gt;”" in evil


def test_a_folded_line_with_a_hit_is_unfolded(viewer):
    session = SessionFactory()
    says(session, "NAMES\njellyfin\nneedle", kind="tool_result")
    assert "<details open><summary>" in html_of(viewer, f"/sessions/{session.pk}?q=needle")


@pytest.mark.parametrize("query", ["kind=x", f"q={'x' * 300}", "line=0", "line=x", "q=%00", "start=x", "timeline=x"])
def test_a_restriction_that_cannot_be_read_shows_the_whole_page(viewer, mixed, query):
    assert seqs(html_of(viewer, f"/sessions/{mixed.pk}?{query}")) == list(range(1, 11))


def test_a_restricted_log_is_followed_with_its_restriction(viewer, mixed):
    poll = next_of(html_of(viewer, f"/sessions/{mixed.pk}?kind=errors&q=o"))
    assert poll == f"/sessions/{mixed.pk}/log?after=10&amp;kind=errors&amp;q=o"
    poll = poll.replace("&amp;", "&")
    says(mixed, "Not an error.")
    assert viewer.get(poll, headers=HTMX).status_code == 204
    says(mixed, "Error: no", kind="tool_result", is_error=True)
    html = html_of(viewer, poll, **HTMX)
    assert seqs(html) == [12]
    assert next_of(html) == f"/sessions/{mixed.pk}/log?after=12&amp;kind=errors&amp;q=o"
    assert 'id="log-kinds" aria-label="Kinds" hx-swap-oob="true"' in html
    assert "Errors 3" in html


def test_a_poll_that_finds_nothing_in_many_lines_goes_on_behind_them(viewer):
    session = running()
    poll = f"/sessions/{session.pk}/log?after=0&kind=errors"
    says(session, *["x"] * MOST_PASSED)
    html = html_of(viewer, poll, **HTMX)
    assert seqs(html) == []
    assert next_of(html) == f"/sessions/{session.pk}/log?after={MOST_PASSED}&amp;kind=errors"


def test_a_search_looks_through_so_many_lines_and_offers_to_go_on(viewer, monkeypatch):
    monkeypatch.setattr(entries, "MOST_SEARCHED", 50)
    session = SessionFactory()
    says(session, "needle 1", *["x"] * 70, "needle 72", *["x"] * 70)
    html = html_of(viewer, f"/sessions/{session.pk}?q=needle")
    assert seqs(html) == []
    assert "among the newest" in html
    html = html_of(viewer, gap_of(html), **HTMX)
    assert seqs(html) == [72]
    html = html_of(viewer, gap_of(html), **HTMX)
    assert seqs(html) == [1]
    assert gap_of(html) is None
    seen, query = [], "?after=0&q=needle"
    while query:
        html = html_of(viewer, f"/sessions/{session.pk}/log{query}")
        seen += seqs(html)
        found = re.search(r'href="(\?after=[^"]+)" rel="next"', html)
        query = found[1].replace("&amp;", "&") if found else ""
    assert seen == [1, 72]


# -- a link to a line --------------------------------------------------------------------------------------------


def test_each_line_has_a_permanent_link(viewer, mixed):
    assert '<a class="log-number" href="?line=3#line-3" aria-label="Line 3">3</a>' in html_of(
        viewer, f"/sessions/{mixed.pk}"
    )


def test_a_line_that_is_asked_for_is_shown_with_its_neighbours_and_the_newest_lines(viewer):
    session = running()
    says(session, *["x"] * (4 * PAGE))
    html = html_of(viewer, f"/sessions/{session.pk}?line=200")
    first = 200 - AROUND
    assert seqs(html) == [*range(first, first + PAGE), *range(3 * PAGE + 1, 4 * PAGE + 1)]
    assert f"Show the {2 * PAGE - first + 1} lines between" in html
    assert 'class="log-text is-line" id="line-200"' in html
    assert next_of(html) == f"/sessions/{session.pk}/log?after={4 * PAGE}"


@pytest.mark.parametrize("line", [1, 5, 31, 400, 640, 899, 900])
def test_from_a_line_that_is_asked_for_all_others_can_be_reached_and_none_twice(viewer, line):
    session = running()
    says(session, *["x"] * (3 * PAGE))
    browser = Browser(viewer)
    browser.items, browser.poll = browser._read(html_of(viewer, f"/sessions/{session.pk}?line={line}"))
    assert line in browser.items
    says(session, "new")
    browser.tick()
    assert browser.show_all() == list(range(1, 3 * PAGE + 2))


def test_without_a_script_a_line_is_shown_on_its_page_of_the_log(viewer):
    session = SessionFactory()
    says(session, *["x"] * (2 * PAGE + 5))
    for line, shown in ((1, range(1, PAGE + 1)), (PAGE, range(1, PAGE + 1)), (PAGE + 1, range(PAGE + 1, 2 * PAGE + 1))):
        html = html_of(viewer, f"/sessions/{session.pk}/log?line={line}")
        assert seqs(html) == list(shown)
        assert f'is-line" id="line-{line}"' in html


# -- lines -------------------------------------------------------------------------------------------------------


def test_markers_stand_out_but_not_those_that_are_quoted(viewer):
    session = SessionFactory()
    says(
        session,
        "Look:\n[MEMORY:timing:jellyfin] Takes 60 s\n[EVENT:warning] hot\n[COOLDOWN:restart:caddy] success - ok\n"
        "> [MEMORY:timing] quoted\n```\n[EVENT:info] fenced\n```\n[MEMORY:mood] none <b>",
    )
    html = html_of(viewer, f"/sessions/{session.pk}/log")
    assert '<mark class="marker marker-memory">[MEMORY:timing:jellyfin]</mark> Takes 60 s' in html
    assert '<mark class="marker marker-event">[EVENT:warning]</mark>' in html
    assert '<mark class="marker marker-cooldown">[COOLDOWN:restart:caddy]</mark>' in html
    assert '<mark class="marker marker-unread">[MEMORY:mood]</mark> none &lt;b&gt;' in html
    assert html.count("<mark") == 4


def test_what_a_tool_answered_is_folded_unless_it_is_one_short_line(viewer):
    session = SessionFactory()
    says(session, "Bash: docker ps", kind="tool_use")
    says(session, "NAMES\njellyfin\ncaddy", "Up 3 hours", kind="tool_result")
    says(session, "Error: no such container\nat all", kind="tool_result", is_error=True)
    html = html_of(viewer, f"/sessions/{session.pk}/log")
    assert '<span class="log-kind">Bash</span>' in html
    assert "<pre>docker ps</pre>" in html
    assert '<details><summary>NAMES <span class="quiet">(3 lines)</span></summary><pre>NAMES' in html
    assert "<pre>Up 3 hours</pre>" in html
    assert '<li class="log-tool_result is-bad"' in html
    assert "<pre>no such container\nat all</pre>" in html  # an error is not folded away
    assert html.count("<details>") == 1


# -- the raw log -------------------------------------------------------------------------------------------------


def test_the_raw_log_is_a_file_to_keep(viewer, data_dir):
    (data_dir / "sessions").mkdir()
    (data_dir / "sessions" / "log.jsonl").write_bytes(b'{"type":"result"}\n<script>')
    session = SessionFactory(log_file="sessions/log.jsonl")
    response = viewer.get(f"/sessions/{session.pk}/log/raw?download")
    assert b"".join(response.streaming_content) == b'{"type":"result"}\n<script>'
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Disposition"] == f'attachment; filename="session-{session.pk}.jsonl"'
    html = html_of(viewer, f"/sessions/{session.pk}")
    assert f'href="/sessions/{session.pk}/log/raw">Raw, 26\xa0bytes</a>' in html
    assert f'href="/sessions/{session.pk}/log/raw?download"' in html


def test_the_raw_log_is_read_page_by_page_and_escaped(viewer, data_dir):
    (data_dir / "sessions").mkdir()
    lines = b"".join(b'{"n": %d, "text": "<b>"}\n' % number for number in range(20_000))
    (data_dir / "sessions" / "log.jsonl").write_bytes(lines)
    session = SessionFactory(log_file="sessions/log.jsonl")
    seen, address = "", f"/sessions/{session.pk}/log/raw"
    query = "?page=1"
    while query:
        html = html_of(viewer, address + query)
        assert len(html) < 3 * PAGE_BYTES
        seen += unescape(html.split('<pre class="raw"')[1].split(">", 1)[1].split("</pre>")[0])
        found = re.search(r'href="(\?page=\d+)" rel="next"', html)
        query = found[1] if found else ""
    assert seen == lines.decode()
    assert "Page 5 of 5" in html_of(viewer, f"{address}?page=999")
    assert "Page 1 of 5" in html_of(viewer, f"{address}?page=x")


OUTSIDE = (
    *("../secret.txt", "sessions/link.jsonl", "sessions/../log.jsonl", "secret_key", "claudeops.sqlite3"),
    *("sessions/mcp.json", "sessions", "", "none.jsonl", "a\x00b"),
)


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_but_raw_logs_in_the_sessions_folder_is_given_away(viewer, data_dir, name):
    secret = Path(data_dir).parent / "secret.txt"
    secret.write_text("secret")
    (data_dir / "sessions").mkdir()
    (data_dir / "sessions" / "link.jsonl").symlink_to(secret)
    for other in ("log.jsonl", "secret_key", "claudeops.sqlite3", "sessions/mcp.json"):
        (data_dir / other).write_text("secret")
    session = SessionFactory.build(agent=None, log_file=name)
    if "\x00" not in name:
        session.save()
        assert viewer.get(f"/sessions/{session.pk}/log/raw").status_code == 404
        assert viewer.get(f"/sessions/{session.pk}/log/raw?download").status_code == 404
        assert "/log/raw" not in html_of(viewer, f"/sessions/{session.pk}")
    absolute = SessionFactory(log_file=str(secret))
    assert viewer.get(f"/sessions/{absolute.pk}/log/raw").status_code == 404
