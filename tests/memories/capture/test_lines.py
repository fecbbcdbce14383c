"""Which lines are an agent's own words: `memories/capture/lines.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.capture.lines import accepted_lines


def own(text):
    return [line for _, line in accepted_lines(text).lines]


def test_plain_lines_are_all_accepted_with_their_numbers():
    assert accepted_lines("a\r\nb\rc\n").lines == [(1, "a"), (2, "b"), (3, "c"), (4, "")]


def test_quoted_lines_are_skipped_and_counted():
    accepted = accepted_lines("a\n> b\n  > c\n>>d\ne > f")
    assert [line for _, line in accepted.lines] == ["a", "e > f"]
    assert (accepted.skipped_quoted, accepted.skipped_fenced) == (3, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n```\nb\n```\nc", ["a", "c"]),
        ("a\n```python title\nb\n```\nc", ["a", "c"]),
        ("a\n~~~\nb\n```\nb\n~~~\nc", ["a", "c"]),
        ("a\n````\nb\n```\nb\n````\nc", ["a", "c"]),
        ("a\n```\nb\n`````  \nc", ["a", "c"]),
        ("a\n```\nb\n``` not the end\nb\n```\nc", ["a", "c"]),
        ("a\n```\nnever closed\n> quoted in it", ["a"]),
        ("1. a\n    ```\n    b\n    ```\nc", ["1. a", "c"]),
        ("a\n- ```sh\n  b\n  ```\nc", ["a", "c"]),
        ("a\n10. ```\nb\n```\nc", ["a", "c"]),
        ("a ```inline``` b\n```all of it```\nc", ["a ```inline``` b", "```all of it```", "c"]),
        ("``\na\n``", ["``", "a", "``"]),
        ("> ```\na", ["a"]),
    ],
)
def test_what_is_in_a_fence_is_skipped(text, expected):
    assert own(text) == expected


def test_fenced_lines_are_counted_with_their_fences():
    accepted = accepted_lines("a\n```\nb\n> c\n```")
    assert (accepted.skipped_quoted, accepted.skipped_fenced) == (0, 4)


@given(st.text(alphabet="ab`~> \n\r-1.", max_size=80))
def test_every_line_is_accepted_or_counted_and_kept_in_order(text):
    accepted = accepted_lines(text)
    numbers = [number for number, _ in accepted.lines]
    assert numbers == sorted(set(numbers))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert len(lines) == len(numbers) + accepted.skipped_quoted + accepted.skipped_fenced
    assert len(accepted.skipped) == accepted.skipped_quoted + accepted.skipped_fenced
    assert all(lines[number - 1] == line for number, line in accepted.lines)
    assert not any(line.lstrip().startswith(">") for _, line in accepted.lines)
