"""What a field of a stream line may hold."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.runner import accept

ODD = [True, "7", [7], {"n": 7}, -1, 1.5, 2**63, 1e308, math.nan, math.inf, -math.inf]


def test_what_is_no_count_is_dropped_and_named(subtests):
    for value in ODD:
        with subtests.test(str(value)):
            bad: accept.Bad = []
            assert accept.integer({"n": value}, "n", bad) == 0
            assert bad == ["n"]


def test_counts_within_their_bound_are_taken():
    bad: accept.Bad = []
    assert [accept.integer({"n": n}, "n", bad, most=9) for n in (0, 9, 3.0, None)] == [0, 9, 3, 0]
    assert (bad, accept.integer({}, "n", bad)) == ([], 0)
    assert accept.integer({"n": 10}, "n", bad, most=9) == 0
    assert bad == ["n"]


def test_amounts_that_the_column_cannot_hold_are_dropped(subtests):
    for value in [1_000_000, -0.01, math.nan, math.inf, "1", True, [1], 10**400]:
        with subtests.test(str(value)):
            bad: accept.Bad = []
            assert accept.dollars({"usd": value}, "usd", bad) is None
            assert bad == ["usd"]


def test_amounts_are_taken_up_to_the_bound():
    assert accept.dollars({"usd": 99_999.999999}, "usd", []) == 99_999.999999
    assert accept.dollars({"usd": 0}, "usd", []) == 0.0
    assert accept.dollars({}, "usd", []) is None


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00Z", "1999-12-31T23:59:59Z", "yesterday", 7, ["x"], "9999"])
def test_times_that_no_session_has_are_dropped(value):
    bad: accept.Bad = []
    assert accept.time({"t": value}, "t", bad) is None
    assert bad == ["t"]


def test_a_time_is_read_with_its_zone():
    assert accept.time({"t": "2026-05-01T02:00:00+02:00"}, "t", []) == datetime(2026, 5, 1, tzinfo=UTC)


def test_lists_keep_what_they_should_hold():
    bad: accept.Bad = []
    assert accept.mappings({"l": [{"a": 1}, 3, "x", None]}, "l", bad) == [{"a": 1}]
    assert accept.texts({"l": ["a", 3, "b"]}, "l", bad) == ("a", "b")
    assert accept.mappings({"l": "text"}, "l", bad) == []
    assert bad == ["l"] * 5


def test_a_document_has_no_value_that_a_database_refuses():
    bad: accept.Bad = []
    given = {"a": math.nan, "b": [math.inf, 1], "c": 2**70, "d": "kept"}
    found = accept.document({"answer": given}, "answer", bad)
    assert found == {"a": None, "b": [None, 1], "c": None, "d": "kept"}
    assert bad == ["answer"] * 3
    json.dumps(found, allow_nan=False)


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("levels", [100, 900, 5_000, 200_000])
def test_a_line_stays_whatever_is_nested_in_it(levels):
    bad: accept.Bad = []
    line = f'{{"type":"result","structured_output":{nested(levels)},"num_turns":3,"result":"a ]}}\\" b"}}'
    data = accept.load(line.encode(), bad)
    assert data is not None
    assert (data["num_turns"], data["result"]) == (3, 'a ]}" b')
    assert accept.document(data, "structured_output", bad) is not None
    assert bad


def test_a_number_of_thousands_of_digits_costs_its_field_alone():
    bad: accept.Bad = []
    data = accept.load(b'{"num_turns":' + b"9" * 9_000 + b',"duration_ms":5}', bad)
    assert data is not None
    assert (accept.integer(data, "num_turns", bad), accept.integer(data, "duration_ms", bad)) == (0, 5)
    assert bad == ["num_turns"]


def test_control_characters_within_a_text_cost_themselves_alone():
    assert accept.load(b'{"a":"x\x00y\x01z","n":1}', []) == {"a": "x\ufffdy\x01z", "n": 1}


def test_what_is_no_object_is_none(subtests):
    for raw in [b"", b"[" * 100_000, b'{"a":' * 100_000, b"[1]", b'"x"', b"{", b"nul", b"\x00"]:
        with subtests.test(str(raw)):
            assert accept.load(raw, []) is None


ODD_JSON = (
    *(
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"a"',
        '"a":',
        '"b":',
        '""',
        " ",
        "\n",
        "\x0b",
        "\x1c",
        "\xa0",
        "\u2028",
        "\ufeff",
        "//",
    ),
    *("0", "-0", "-0.0", "01", "1.", ".5", "+1", "1E5", "1e400", "-1e400", "1e-400", "4.9e-324", "0.30000000000000004"),
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "-NaN",
        "nan",
        "true",
        "True",
        "null",
        "18446744073709551616",
        "-9223372036854775809",
    ),
    *("9" * 4299, "9" * 4300, "9" * 4301, "9" * 5000, "[" * 150, "]" * 150, '{"a":' * 150, "}" * 150),
    *(
        '"\\u0000"',
        '"\\ud800"',
        '"\\uD83D\\uDE00"',
        '"\\u00e9"',
        '"\\u12G4"',
        '"\\x"',
        '"\\/"',
        '"\x01"',
        '"\n"',
        '"é😀"',
        '"\ud800"',
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.sampled_from(ODD_JSON), max_size=12).map("".join)
    | st.lists(st.sampled_from(ODD_JSON), max_size=6).map(lambda parts: f'{{"a":{"".join(parts)},"a":1}}')
    | st.dictionaries(st.text(max_size=3), JSON, max_size=3).map(json.dumps),
    st.binary(max_size=2),
    st.integers(0, 40),
)
def test_both_parsers_read_a_line_alike(text, noise, at):
    """A space before a line leaves it to Python's parser."""
    raw = text.encode("utf-8", "surrogatepass")
    raw = raw[:at] + noise + raw[at:] if at % 2 else raw
    bad: tuple[accept.Bad, accept.Bad] = ([], [])
    assert repr(accept.load(raw, bad[0])) == repr(accept.load(b" " + raw, bad[1]))
    assert bad[0] == bad[1]
