"""Folding: `memories/capture/text.py`."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.capture.text import fold, normalise_service

# Visible signs that Unicode counts as format characters.
SEEN = set(map(chr, [*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD]))
SEEN |= set(map(chr, range(0x13430, 0x13440)))


def test_line_breaks_and_control_characters_become_one_space():
    assert fold(" a\r\n\r\nb\tc\x00\x1bd\x85e\u2028f\u2029g\x0bh ") == "a b c d e f g h"


def test_what_cannot_be_seen_is_gone():
    assert fold("a\u200bb\u202ec\u2066d\ufeffe\u00adf\U000e0041g") == "abcdefg"


def test_every_invisible_format_character_is_gone():
    formats = {c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "Cf"} - SEEN
    assert {c for c in formats if fold(f"a{c}b") != "ab"} == set()


def test_half_characters_become_the_replacement_character():
    assert fold("a\ud83db\udc00") == "a\ufffdb\ufffd"


def test_text_of_any_language_is_left_as_it_is():
    for text in ("Größe 5 µs – “ok”", "起動に60秒かかる", "🚀 fast", "naïve café", "نص عربي"):
        assert fold(text) == text


@given(st.text(alphabet=st.characters(), max_size=200) | st.text(st.characters(categories=["Cs", "Cc", "Cf"])))
def test_folding_gives_one_storable_line_and_is_done_once(text):
    folded = fold(text)
    assert len(folded.splitlines()) <= 1
    assert folded == folded.strip()
    folded.encode("utf-8")
    assert "\x00" not in folded
    assert fold(folded) == folded


@pytest.mark.parametrize("name", [None, "", " ", "general", "General", " GENERAL\n", "\u200b"])
def test_no_service(name):
    assert normalise_service(name) is None


def test_a_service_is_in_lower_case():
    assert normalise_service(" Jellyfin ") == "jellyfin"
