"""A line may hold anything: the session closes, the pages answer, and what was dropped is counted."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from datetime import timedelta
from pathlib import Path

import hypothesis
import pytest
from django.db import DataError, connection
from hypothesis import given
from hypothesis import strategies as st

from memories.models import Memory
from sessions_app.models import Event, LogEntry, Session, Status
from sessions_app.runner import ingest as module
from sessions_app.runner import run, stream
from sessions_app.runner.ingest import ingest
from sessions_app.runner.projection import Batch, State, project
from tests.sessions_app.runner.test_ingest import a_session, feed, log_of
from tests.support.factories import SessionFactory
from tests.support.streams import START, init, line, result, text

STREAMS = Path(__file__).parents[2] / "data" / "streams"
RECORDED = [json.loads(raw) for path in sorted(STREAMS.glob("*.jsonl")) for raw in path.read_bytes().splitlines()]
NOTE = "[MEMORY:timing:db] Takes 20 seconds to start"
ODD = [True, "x", [1], {"a": 1}, -1, 1.5, 2**63, 1e308, float("nan"), float("inf"), "a\x00b", None, [[]], 2**31, ""]

pytestmark = pytest.mark.django_db


def closed(session: Session) -> Session:
    run.finish(session.pk, exit_code=0)
    session.refresh_from_db()
    assert session.status not in (Status.QUEUED, Status.RUNNING)
    assert session.ingest_offset == log_of(session).stat().st_size
    return session


@pytest.mark.parametrize(
    "fields",
    [
        {"num_turns": -1},
        {"num_turns": 2**63},
        {"duration_ms": 1e308},
        {"duration_ms": -5},
        {"total_cost_usd": 1_000_000},
        {"total_cost_usd": float("inf")},
        {"total_cost_usd": float("nan")},
        {"usage": {"input_tokens": 10**30, "output_tokens": 5}},
        {"structured_output": {"summary": float("nan")}},
        {"permission_denials": [7]},
        {"errors": [["x"]]},
        {"is_error": [0]},
    ],
    ids=str,
)
def test_a_bad_field_of_the_result_is_dropped_and_the_session_closes(operator, client, fields):
    session = feed(a_session(), init(), text(NOTE), result(**fields), text("[EVENT:info:db] after it"))
    assert session.stats["bad_fields"] >= 1
    assert Event.objects.count() == 1
    session = closed(session)
    assert session.status == Status.COMPLETED
    client.force_login(operator)
    for address in ("/sessions", f"/sessions/{session.pk}", "/admin/sessions_app/session/", "/"):
        assert client.get(address).status_code == 200


def test_nine_hundred_levels_of_nesting_cost_what_is_nested(client):
    deep = '{"a":' * 900 + "1" + "}" * 900
    answer = result(structured_output={"summary": "Kept.", "x": 0}).replace('"x": 0', f'"x": {deep}')
    session = closed(feed(a_session(), init(), text(NOTE), answer))
    assert (session.status, session.summary) == (Status.COMPLETED, "Kept.")
    assert session.stats["bad_fields"] == 1
    assert Memory.objects.count() == 1


def test_a_type_that_is_a_list_is_counted():
    session = feed(a_session(), init(), '{"type": ["assistant"], "x": 1}\n', '{"type": {"a": 1}}\n', text(NOTE))
    assert (session.stats["bad_fields"], session.stats["unknown_type"]) == (2, 2)
    assert Memory.objects.count() == 1


def test_the_dropped_fields_are_named_once_a_batch(caplog, monkeypatch):
    monkeypatch.setattr(module.logging.getLogger("sessions_app"), "propagate", True)
    feed(a_session(), result(num_turns=-1, total_cost_usd=1e300), result(num_turns=-2))
    [said] = {record.getMessage() for record in caplog.records if "not accepted" in record.getMessage()}
    assert said.endswith("dropped: num_turns, total_cost_usd")


@pytest.mark.parametrize("usd", ["1000000", "1e308", "9e999"])
def test_a_cost_that_was_stored_before_does_not_break_the_pages(operator, client, usd):
    """SQLite takes any number; PostgreSQL refuses it when it is stored."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL never stored it")
    session = SessionFactory()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE sessions SET cost_usd = {usd} WHERE id = %s", [session.pk])
    client.force_login(operator)
    for address in (
        *("/", "/sessions", f"/sessions/{session.pk}", "/admin/sessions_app/session/", "/sessions?spent=today"),
        f"/admin/sessions_app/session/{session.pk}/change/",
    ):
        assert client.get(address).status_code == 200, address


def test_a_sum_of_costs_may_be_larger_than_the_column():
    for _ in range(15):
        SessionFactory(cost_usd=99_999)
    assert Session.objects.all().cost_and_turns()[0] == 15 * 99_999


# -- what the database refuses -----------------------------------------------------------------------------------


@pytest.fixture
def refusing(monkeypatch):
    """The database refuses each batch that has a log entry with REFUSED in it."""
    attempts = []
    store = module.log_entries.store

    def refuse(session_id, entries):
        if any("REFUSED" in entry.text for entry in entries):
            attempts.append(len(entries))
            raise DataError("the database does not take this")
        store(session_id, entries)

    monkeypatch.setattr(module.log_entries, "store", refuse)
    return attempts


def test_a_line_that_the_database_refuses_three_times_is_skipped_and_counted(refusing):
    lines = [text(f"[EVENT:info:db] number {n}") for n in range(20)]
    lines[7] = text("REFUSED [EVENT:info:db] lost")
    session = closed(feed(a_session(), init(), *lines, result()))
    assert session.status == Status.COMPLETED
    assert (session.stats["refused_lines"], session.stats["lines"]) == (1, 22)
    assert Event.objects.count() == 19
    assert LogEntry.objects.count() == 21
    assert refusing[-3:] == [1, 1, 1]
    assert len(refusing) < 14


def test_a_whole_log_of_refused_lines_ends(refusing):
    session = feed(a_session(), *[text(f"REFUSED {n}") for n in range(5)])
    assert session.stats["refused_lines"] == 5
    assert session.ingest_offset == log_of(session).stat().st_size


def test_a_refused_line_counts_nothing_else_twice(refusing):
    session = feed(a_session(), text(NOTE), text("REFUSED"), result())
    assert (Memory.objects.count(), session.stats["memories_created"], session.num_turns) == (1, 1, 2)


# -- estimates -----------------------------------------------------------------------------------------------------


def said(id_: str, output: int, **fields) -> str:
    usage = {"input_tokens": 100_000, "output_tokens": output, "cache_read_input_tokens": 1_000_000}
    content = [{"type": "text", "text": f"Looking at {id_}."}]
    message = {"id": id_, "role": "assistant", "model": "claude-sonnet-5-5", "content": content, "usage": usage}
    return line(type="assistant", message=message, **fields)


def test_a_session_without_a_result_costs_what_its_messages_cost(operator, client):
    session = feed(a_session(), init(), said("a", 1), said("a", 10_000), said("b", 0), final=False)
    assert float(session.cost_usd) == pytest.approx(0.7)  # 2 x ($0.20 + $0.10), and $0.10 of output
    assert (session.num_turns, session.usage["output_tokens"]) == (2, 10_000)
    assert session.cost_is_estimated
    client.force_login(operator)
    page = client.get(f"/sessions/{session.pk}").content.decode()
    assert re.search(r"<dt>Cost so far</dt>\s+<dd>\s+~\$0.70\s+<small>estimated, of ", page)
    assert "~$0.70" in client.get("/sessions").content.decode()
    assert Session.objects.paid_on(session.queued_at).cost_and_turns()[0] == session.cost_usd  # the daily budget
    session = feed(session, result(total_cost_usd=0.5, num_turns=3))
    assert (float(session.cost_usd), session.num_turns, session.cost_is_estimated) == (0.5, 3, False)
    assert session.usage == {"input_tokens": 100, "output_tokens": 20}
    assert ">estimated" not in client.get(f"/sessions/{session.pk}").content.decode()


def test_a_session_that_was_ingested_in_part_by_a_version_before_goes_on():
    session = feed(a_session(), init(), result(total_cost_usd=0.5))
    before = {key: value for key, value in session.ingest_state.items() if key in ("seq", "results", "stats", "model")}
    Session.objects.filter(pk=session.pk).update(ingest_state=before)
    session = feed(session, result(total_cost_usd=0.75, duration_ms=500))
    assert (float(session.cost_usd), session.num_turns, session.duration_ms) == (0.75, 4, 1500)
    assert session.usage == {"input_tokens": 200, "output_tokens": 40}


def test_an_unknown_models_price_is_counted_as_a_guess():
    session = feed(a_session(), said("a", 1).replace("sonnet-5-5", "opus-77"))
    assert session.stats["prices_guessed"] == 1
    assert float(session.cost_usd) == pytest.approx(15 * 0.1 + 1.5, rel=0.01)


def test_another_model_is_told_in_the_readable_log():
    session = feed(
        a_session(),
        init(),
        text("a"),
        line(
            type="system",
            subtype="model_refusal_fallback",
            original_model="claude-fable-5",
            fallback_model="claude-opus-5",
            api_refusal_category="cyber",
        ),
        line(type="control_response", response={"subtype": "success"}),
        text("b", model="claude-opus-5"),
        text("c", model="claude-opus-5[1m]"),
        text("d", model="claude-haiku-4-5", parent_tool_use_id="toolu_1"),
    )
    told = list(LogEntry.objects.filter(kind="system").order_by("seq").values_list("text", flat=True))
    assert told[1:] == [
        "model_refusal_fallback: claude-fable-5 refused (cyber); claude-opus-5 answers instead",
        "model: claude-opus-5 after claude-sonnet-5-5",
    ]
    assert "unknown_type" not in session.stats


def page_of(client, path: str) -> str:
    return client.get(f"/sessions/{path}").content.decode()


def test_the_duration_is_one_number_everywhere(operator, client):
    from sessions_app.api.serializers import as_row
    from sessions_app.management.session_text import as_text

    session = a_session(started_at=START)
    feed(session, init(), result(duration_ms=21_000))
    run.finish(session.pk, exit_code=0)
    Session.objects.filter(pk=session.pk).update(status=Status.RUNNING)
    run.close(session.pk, Status.COMPLETED, "", at=START + (START.replace(second=26) - START))
    session.refresh_from_db()
    client.force_login(operator)
    assert as_row(session)["duration_ms"] == session.lasted_ms == 26_000
    assert ", 26 s, " in as_text(session)
    page = client.get(f"/sessions/{session.pk}").content.decode()
    assert re.search(r"<dt>Duration</dt>\s+<dd>\s+26 s\s", page)
    assert 'cell-took">26 s<' in client.get("/sessions").content.decode()
    other = SessionFactory(agent=session.agent, queued_at=session.queued_at + timedelta(hours=1))
    assert re.search(r'<th scope="row">Duration</th>\s+<td>–</td>\s+<td>26 s', page_of(client, f"{other.pk}/compare"))
    assert "26 s, $" in page_of(client, f"{other.pk}")  # the last good run
    assert "took 26 s" in client.get("/feed").content.decode()
    assert re.search(r'data-label="median">26 s</td>', client.get("/").content.decode())
    admin = client.get(f"/admin/sessions_app/session/{session.pk}/change/").content.decode()
    assert "21000" not in admin
    assert "26 s" in admin


# -- anything at all -----------------------------------------------------------------------------------------------

ANY = st.recursive(
    st.sampled_from(ODD) | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def places(value: object, path: tuple = ()) -> list[tuple]:
    """Return the paths of all values in a JSON document."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


@st.composite
def mutated(draw) -> bytes:
    """A recorded line, of which some values are replaced or removed, or some bytes."""
    record = json.loads(json.dumps(draw(st.sampled_from(RECORDED))))
    for _ in range(draw(st.integers(1, 3))):
        paths = places(record)
        *above, last = draw(st.sampled_from(paths))
        inner = record
        for key in above:
            inner = inner[key]
        if isinstance(inner, dict) and draw(st.booleans()) and draw(st.booleans()):
            del inner[last]
        else:
            inner[last] = deepcopy(draw(ANY))  # what is drawn is shared between examples
    raw = json.dumps(record).encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(raw) - 1))
        raw = raw[:at] + draw(st.binary(max_size=4)).replace(b"\n", b"") + raw[at + draw(st.integers(0, 3)) :]
    return raw + b"\n"


KEYS = ("summary", "events", "memories", "escalation", "services_checked", "needed", "key", "value", "name", "message")
ANSWERS = st.dictionaries(
    st.sampled_from(KEYS), ANY | st.lists(st.dictionaries(st.sampled_from(KEYS), ANY), max_size=3)
)


@hypothesis.settings(max_examples=max(10, hypothesis.settings.default.max_examples // 3))
@given(ANSWERS)
def test_a_session_with_any_structured_answer_closes(answer):
    Memory.objects.all().delete()
    session = closed(feed(a_session(), init(), result(structured_output=answer)))
    assert session.status == Status.COMPLETED
    assert "refused_lines" not in session.stats


@given(mutated())
def test_any_line_is_read_and_projected(raw):
    state, batch = State(), Batch()
    project(stream.parse(raw), 0, state, batch, now=START)
    assert state.stats["lines"] == 1
    json.dumps(state.structured, allow_nan=False)


@hypothesis.settings(max_examples=max(10, hypothesis.settings.default.max_examples // 3))
@given(st.lists(mutated(), min_size=1, max_size=8))
def test_a_session_of_any_lines_closes(lines):
    Memory.objects.all().delete()
    session = a_session()
    log_of(session).write_bytes(b"".join(lines))
    ingest(session.pk, final=True)
    session = closed(session)
    assert session.stats["lines"] == len([raw for raw in lines if raw.strip()])
    assert "refused_lines" not in session.stats
