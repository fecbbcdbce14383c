from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from memories.observe.runs import Runs

WORDS = st.lists(st.sampled_from(["one", "two", "three", "four", "five", "sixx", "1234"]), max_size=12)


@given(WORDS, WORDS, WORDS)
def test_a_whole_passage_is_found_wherever_it_stands(before, passage, after):
    runs = Runs([" ".join(passage)], length=4, shortest=3)
    text = " ".join([*before, "XX", *passage, "XX", *after])
    kept, count = runs.without(text, "")
    if len(passage) >= 3:
        assert count >= 1
        assert " ".join(passage) not in kept
    else:
        assert (kept, count) == (text, 0)


@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=200))
def test_spans_are_in_order_and_do_not_overlap(passages, text):
    last = 0
    for start, end in Runs(passages, length=3, shortest=1, telling=True).spans(text):
        assert last <= start < end <= len(text)
        last = end


def test_letter_case_and_punctuation_do_not_matter():
    assert Runs(["Backups run at 03:00"], length=9, shortest=3).without("so BACKUPS, run: at 03.00!", "-") == (
        "so -!",
        1,
    )


def test_a_passage_that_repeats_itself_takes_linear_time():
    started = time.perf_counter()
    found = Runs(["a b " * 20_000], length=4, shortest=1).spans("a b " * 100_000)
    assert len(found) == 1
    assert time.perf_counter() - started < 5
