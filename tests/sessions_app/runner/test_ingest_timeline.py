"""What an ingest stores with a log entry for the timeline: turn, call, error, tokens and cost."""

from __future__ import annotations

import json

import pytest

from sessions_app.models import LogEntry, Session
from sessions_app.runner.exposure import MOST_CALLS
from sessions_app.runner.ingest import ingest
from tests.sessions_app.runner.test_ingest import STREAMS, a_session, feed, log_of
from tests.support.streams import init, line, result

pytestmark = pytest.mark.django_db

USAGE = {"input_tokens": 1000, "output_tokens": 10}


def says(id_: str, *blocks: dict, usage: dict | None = USAGE, parent: str | None = None) -> str:
    message = {"id": id_, "model": "claude-sonnet-5-5", "content": list(blocks), "usage": usage}
    return line(type="assistant", message=message, parent_tool_use_id=parent)


def words(text: str) -> dict:
    return {"type": "text", "text": text}


def use(id_: str, name: str = "Bash") -> dict:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"command": f"run {id_}"}}


def answer(id_: str, *, is_error: bool = False, parent: str | None = None) -> str:
    content = [{"type": "tool_result", "tool_use_id": id_, "content": f"of {id_}", "is_error": is_error}]
    return line(type="user", message={"role": "user", "content": content}, parent_tool_use_id=parent)


def stored(*names: str) -> list[tuple]:
    return list(LogEntry.objects.order_by("seq").values_list(*names))


def test_each_message_of_the_main_thread_is_a_turn_and_its_lines_share_the_number():
    feed(
        a_session(),
        init(),
        says("m1", words("First.")),
        says("m1", use("a")),
        answer("a"),
        says("m2", words("Second.")),
        result(),
    )
    assert stored("turn", "kind") == [
        (None, "system"),
        *((1, kind) for kind in ("text", "tool_use", "tool_result")),
        *((2, kind) for kind in ("text", "result")),
    ]


def test_a_result_names_its_call_and_whether_it_is_an_error():
    feed(a_session(), says("m1", use("a"), use("b")), answer("b", is_error=True), answer("a"), answer("unknown"))
    assert stored("seq", "call", "is_error") == [
        (1, None, False),
        (2, None, False),
        (3, 2, True),
        (4, 1, False),
        (5, None, False),
    ]


def test_the_result_line_of_a_failed_session_is_an_error():
    feed(a_session(), result(subtype="error_max_turns", is_error=True))
    assert stored("is_error") == [(True,)]


def test_the_tokens_and_the_cost_of_a_message_are_stored_once_over_its_lines():
    more = {"input_tokens": 1000, "output_tokens": 1010}
    feed(a_session(), says("m1", words("One.")), says("m1", use("a")), says("m1", words("Two."), usage=more))
    assert stored("tokens") == [(1010,), (None,), (1000,)]
    assert sum(cost or 0 for (cost,) in stored("cost_usd")) == pytest.approx(float(Session.objects.get().cost_usd))


def test_what_a_line_without_an_entry_costs_is_stored_with_the_next_line_of_its_message():
    thought = {"type": "thinking", "thinking": "Hm."}
    feed(a_session(), says("m1", thought), says("m1", words("Now.")))
    assert stored("tokens") == [(1010,)]


def test_a_line_without_usage_stores_no_tokens_and_no_cost():
    feed(a_session(), says("m1", words("One."), usage=None))
    assert stored("tokens", "cost_usd") == [(None, None)]


def test_a_message_that_a_result_line_has_paid_for_adds_nothing_more():
    more = {"input_tokens": 2000, "output_tokens": 10}
    feed(a_session(), says("m1", words("One.")), result(), says("m1", words("Two."), usage=more))
    assert stored("turn", "tokens") == [(1, 1010), (1, None), (1, None)]


def test_a_subagents_lines_name_the_call_that_started_it_and_are_no_turn():
    feed(
        a_session(),
        says("m1", use("agent", "Agent")),
        says("s1", words("I look."), use("inner"), parent="agent"),
        answer("inner", parent="agent"),
        answer("agent"),
        says("s2", words("It still works in the background."), parent="agent"),
        says("s3", words("Of an agent whose call is not known."), parent="other"),
        says("m2", words("Done.")),
    )
    assert stored("seq", "turn", "call") == [
        (1, 1, None),
        (2, 1, 1),
        (3, 1, 1),
        (4, 1, 3),
        (5, 1, 1),
        (6, 1, 1),
        (7, 1, 0),
        (8, 2, None),
    ]


def test_calls_without_a_result_are_kept_for_the_newest_only():
    session = feed(a_session(), *(says(f"m{n}", use(f"t{n}")) for n in range(MOST_CALLS + 5)))
    assert len(session.ingest_state["calls"]) == MOST_CALLS
    feed(session, answer("t0"), answer("t5"))
    assert stored("call")[-2:] == [(None,), (6,)]


def test_a_call_in_one_batch_is_answered_in_another_and_an_ingest_again_changes_nothing():
    session = feed(a_session(), says("m1", use("a")))
    feed(session, answer("a"), says("m1", words("more")), says("m2", words("next")))
    once = stored("seq", "turn", "call", "is_error", "tokens", "cost_usd")
    assert [row[1:3] for row in once] == [(1, None), (1, 1), (1, None), (2, None)]
    ingest(session.pk, final=True)
    LogEntry.objects.all().delete()
    Session.objects.filter(pk=session.pk).update(ingest_offset=0, ingest_state={}, stats={}, num_turns=0)
    ingest(session.pk, final=True)
    assert stored("seq", "turn", "call", "is_error", "tokens", "cost_usd") == once


def test_a_session_that_a_version_before_had_begun_to_ingest_goes_on_with_the_number_of_its_turn():
    session = feed(a_session(), says("m1", words("One.")), says("m2", words("Two.")))
    state = session.ingest_state
    del state["calls"], state["agents"], state["spending"]["turns"]
    for one in state["spending"]["open"]:
        del one["turn"], one["listed"], one["guessed"]
    Session.objects.filter(pk=session.pk).update(ingest_state=state)
    feed(session, says("m2", words("More.")), says("m3", words("Three.")))
    assert stored("turn", "tokens") == [(1, 1010), (2, 1010), (2, None), (3, 1010)]


def test_the_recorded_stream_of_a_subagent():
    session = a_session()
    log_of(session).write_bytes((STREAMS / "subagent.jsonl").read_bytes())
    feed(session)
    assert stored("turn", "kind", "call") == [
        (None, "system", None),
        (1, "text", None),
        (1, "tool_use", None),
        (1, "tool_result", 3),
        (2, "text", None),
        (2, "result", None),
    ]


@pytest.mark.parametrize("id_", ["", "x" * 100_000, "a\u0000b", "\ud800"])
def test_the_id_of_a_call_may_be_anything(id_):
    session = feed(a_session(), says("m1", use(id_)), answer(id_))
    assert len(json.dumps(session.ingest_state)) < 5000
    assert LogEntry.objects.count() == 2
