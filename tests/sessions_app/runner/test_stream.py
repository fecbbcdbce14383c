"""One line of stream-json, as recorded from the real CLI and as broken as it can come."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.runner.accept import storable, timestamp
from sessions_app.runner.stream import Init, Notice, Result, Text, ToolResult, ToolUse, parse

STREAMS = Path(__file__).parents[2] / "data" / "streams"


def records(name, **options):
    lines = (STREAMS / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    return [record for line in lines for record in parse(line, **options).records]


def test_every_line_of_a_recorded_stream_is_read_without_a_problem(subtests):
    for path in sorted(STREAMS.glob("*.jsonl")):
        with subtests.test(str(path)):
            lines = [parse(line) for line in path.read_bytes().splitlines()]
            assert [line.problem for line in lines if line.problem] == []
            assert any(isinstance(record, Init) for line in lines for record in line.records)
            assert isinstance(lines[-1].records[0], Result)


def test_text_tool_use_tool_result_and_result_are_told_apart():
    kinds = [type(record) for record in records("stream")]
    assert kinds == [Init, Text, ToolUse, ToolResult, Text, Result]


def test_the_hook_lines_before_init_do_not_matter():
    assert isinstance(records("hook-events")[0], Init)


@pytest.mark.parametrize(("name", "why"), [("error", "synthetic"), ("usage-limit", "synthetic")])
def test_an_api_errors_text_is_not_the_assistants(name, why):
    texts = [record for record in records(name) if isinstance(record, Text)]
    assert [text.refused for text in texts] == [why]


def test_a_line_with_an_error_is_refused_whatever_its_model():
    line = {"type": "assistant", "error": "x", "message": {"model": "m", "content": [{"type": "text", "text": "t"}]}}
    assert parse(json.dumps(line).encode()).records == (Text("t", "error"),)


def test_a_subagents_text_is_left_out_unless_it_is_asked_for():
    line = {
        "type": "assistant",
        "parent_tool_use_id": "toolu_1",
        "message": {"model": "m", "content": [{"type": "text", "text": "t"}]},
    }
    raw = json.dumps(line).encode()
    assert parse(raw).records == (Text("t", "subagent"),)
    assert parse(raw, include_subagents=True).records == (Text("t"),)


def test_thinking_is_counted_and_not_read():
    lines = [parse(line) for line in (STREAMS / "thinking.jsonl").read_bytes().splitlines()]
    assert [line.skipped for line in lines if line.skipped] == [{"thinking": 1}]
    assert not [r for line in lines for r in line.records if isinstance(r, Text) and "inside thinking" in r.text]


def test_a_denied_permission_is_worth_a_line_and_ends_in_the_result():
    found = records("denied")
    assert Notice("permission_denied", "Bash denied") in found
    assert found[-1].denials == ("Bash: touch /srv/infra/zz",)


def test_a_structured_answer_is_read_from_the_result():
    assert records("json-schema")[-1].structured == {"sev": "stub"}


@pytest.mark.parametrize(
    "raw",
    [b"not json", b"{", b"[1]", b"12", b'"text"', b"\xff\xfe\x00"],
)
def test_a_line_that_cannot_be_read_is_garbage_and_no_error(raw):
    assert parse(raw).problem == "garbage"


def test_an_unknown_type_is_skipped_and_counted():
    assert parse(b'{"type":"brand_new","x":1}').problem == "unknown_type"


def test_the_order_of_keys_does_not_matter():
    line = b'{"message":{"content":[{"text":"t","type":"text"}],"model":"m"},"uuid":"u","type":"assistant"}'
    assert parse(line).records == (Text("t"),)


def test_nul_characters_and_half_surrogates_are_replaced():
    line = rb'{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"a\u0000b\ud800c"}]}}'
    assert parse(line).records == (Text("a\ufffdb?c"),)


def test_pairs_of_surrogates_stay_what_they_are():
    line = rb'{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"\ud83d\ude00"}]}}'
    assert parse(line).records == (Text("😀"),)


def test_a_time_stamp_with_nanoseconds_is_read():
    assert timestamp("2026-11-21T21:37:45.797123456Z") == datetime(2026, 11, 21, 21, 37, 45, 797123, tzinfo=UTC)
    assert timestamp("2026-11-21T23:37:45+02:00") == datetime(2026, 11, 21, 21, 37, 45, tzinfo=UTC)
    assert timestamp("yesterday") is None


@given(st.binary(max_size=400))
def test_no_bytes_raise(raw):
    parse(raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(
    ["message", "content", "model", "usage", "result", "errors", "subtype", "permission_denials", "mcp_servers"]
)


@given(
    st.sampled_from(["assistant", "user", "result", "system", "rate_limit_event", "x"]),
    st.dictionaries(KEYS, JSON, max_size=5),
)
def test_a_known_type_in_any_shape_does_not_raise(kind, rest):
    line = parse(json.dumps({**rest, "type": kind}).encode())
    for record in line.records:
        storable(repr(record)).encode()


@given(JSON)
def test_what_is_storable_can_be_written_to_a_database(value):
    text = json.dumps(storable(value), ensure_ascii=False)
    text.encode("utf-8")
    assert "\x00" not in text
    assert "\\u0000" not in text.replace("\\\\", "")  # an escaped backslash before u0000 is text, and harmless
