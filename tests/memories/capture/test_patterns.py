"""The tables of the gate: how a list, a word list and a name within a pattern are read."""

from __future__ import annotations

import re

import pytest

from memories.capture.attack import FORMS
from memories.capture.knowledge_rules import HELD
from memories.capture.patterns import expressions
from memories.capture.topics import TOPICS


def test_words_lists_and_names_become_expressions():
    table = {
        "thing": "disk tape_drive",
        "act": [["wipe erase", "burn_down"], r"rm -\w+"],
        "both": ["{act} .{0,20}{thing}"],
    }
    read = expressions(table)
    assert read["thing"] == "disk|tape drive"
    assert read["act"] == r"\b(?:wipe|erase|burn down)\b|rm -\w+"
    both = re.compile(read["both"])
    for text, matches in (
        ("wipe the disk", True),
        ("rm -rf on the tape drive", True),
        ("burn down a tape drive", True),
        ("wiped the disk", False),
        ("wipe the tape", False),
    ):
        assert bool(both.search(text)) is matches, text


def test_a_name_that_stands_for_nothing_above_it_is_refused():
    with pytest.raises(KeyError, match="later"):
        expressions({"first": ["{later} x"], "later": "y"})


def test_no_rule_of_the_tables_finds_anything_in_a_harmless_text():
    patterns = [pattern for _, pattern, _ in (*TOPICS, *HELD)] + [pattern for _, _, pattern in FORMS]
    assert len(patterns) > 20
    for text in ("", "Takes 60 s to start"):  # an alternative that is empty would find itself everywhere
        assert [pattern.pattern[:60] for pattern in patterns if pattern.search(text)] == []
