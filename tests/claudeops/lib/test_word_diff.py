"""What differs between two texts: `claudeops/lib/diff.py`. No database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.diff import MOST_WORDS, word_diff

texts = st.text(st.sampled_from("ab 1.,é\n"), max_size=40)


def shown(before: str, after: str) -> str:
    signs = {"same": "{}", "gone": "-[{}]", "new": "+[{}]"}
    return "".join(signs[piece.kind].format(piece.text) for piece in word_diff(before, after))


@given(texts, texts)
def test_the_pieces_spell_both_texts(before, after):
    pieces = word_diff(before, after)
    assert "".join(piece.text for piece in pieces if piece.kind != "new") == before
    assert "".join(piece.text for piece in pieces if piece.kind != "gone") == after
    assert all(piece.text for piece in pieces)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Takes 60 s to start", "Takes 90 s to start", "Takes -[60]+[90] s to start"),
        ("Takes 60s to start", "Takes long to start", "Takes -[60s]+[long] to start"),
        ("never restart it", "always reload it", "-[never restart]+[always reload] it"),
        ("the same", "the same", "the same"),
        ("", "new", "+[new]"),
        ("gone", "", "-[gone]"),
        ("", "", ""),
    ],
)
def test_words_not_letters_are_compared(before, after, expected):
    assert shown(before, after) == expected


def test_what_is_too_long_to_compare_is_shown_as_replaced():
    long = "a " * MOST_WORDS
    assert [piece.kind for piece in word_diff(long, long + "b")] == ["gone", "new"]
