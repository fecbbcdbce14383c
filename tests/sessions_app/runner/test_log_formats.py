"""Logs of every known shape give the same lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.runner.log_formats import decode

STREAM = Path(__file__).parents[2] / "data" / "streams" / "stream.jsonl"
LINES = STREAM.read_bytes().splitlines(keepends=True)


def chunked(data: bytes, sizes) -> list[bytes]:
    text, out, at = data.decode(), [], 0
    sizes = list(sizes) or [len(text)]
    i = 0
    while at < len(text):
        size = max(1, sizes[i % len(sizes)])
        out.append(json.dumps({"type": "stdout", "data": text[at : at + size]}).encode() + b"\n")
        at, i = at + size, i + 1
    return out


def as_json(decoded):
    return [json.loads(line.data) for line in decoded]


BARE = as_json(decode(LINES))


def test_bare_lines_stay_as_they_are():
    assert b"".join(line.data for line in decode(LINES)) == b"".join(LINES)


def test_a_stamped_line_gets_its_stamp_where_it_has_no_time_of_its_own():
    stamped = [b"2026-11-21T21:37:45.123456789Z\t" + line for line in LINES]
    for bare, found in zip(BARE, as_json(decode(stamped)), strict=True):
        assert found == {"timestamp": "2026-11-21T21:37:45.123456789Z", **bare}


@pytest.mark.parametrize("size", [1, 7, 1000, 10**9])
def test_chunks_that_do_not_end_at_line_ends_are_put_together(size):
    assert as_json(decode(chunked(b"".join(LINES), [size]))) == BARE


def test_chunks_of_stamped_lines_are_read_too():
    stamped = b"".join(b"2026-11-21T21:37:45Z\t" + line for line in LINES)
    found = as_json(decode(chunked(stamped, [50])))
    assert [line["type"] for line in found] == [line["type"] for line in BARE]
    assert all("timestamp" in line for line in found)


def test_stderr_chunks_do_not_end_up_in_the_middle_of_a_line():
    first, *rest = chunked(b"".join(LINES), [100])
    noise = b'{"type":"stderr","data":"warning: x\\n"}\n'
    assert as_json(decode([first, noise, *rest])) == BARE


def test_a_last_line_that_breaks_off_is_marked():
    *_, last = decode([*LINES, b'{"type":"assis'])
    assert last.cut
    *_, last = decode(chunked(b"".join(LINES) + b'{"type":"assis', [33]))
    assert last.cut


def test_what_cannot_be_read_is_passed_on_for_the_ingest_to_count():
    found = list(decode([b"garbage\n", *LINES]))
    assert found[0].data == b"garbage\n"
    assert not found[0].cut


@given(st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_any_cutting_gives_the_same_lines(sizes):
    assert as_json(decode(chunked(b"".join(LINES), sizes))) == BARE


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_no_bytes_raise(raw):
    list(decode(raw))
