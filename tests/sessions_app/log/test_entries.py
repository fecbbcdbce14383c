"""A log's lines for reading: put together again they are the text; what is marked is what the readers take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memories.capture.markers import memory_markers
from sessions_app.log.entries import Part, parts
from sessions_app.runner.markers import markers

MARKERS = ("[MEMORY:timing] a", "[MEMORY:mood:x] b", "[EVENT:warn:caddy] c", "[COOLDOWN:restart:a] success - d")
BITS = ("> ", "```", "`", "\n", "\r\n", "text ", ". ", "[", "]", "[EVENT:", "[MEMORY:timing", "é")
WORDS = st.sampled_from((*MARKERS, *BITS))


@given(st.lists(WORDS, max_size=20).map("".join))
def test_the_parts_of_a_text_are_the_text(text):
    assert "".join(part.text for part in parts(text)) == text


@given(st.lists(WORDS, max_size=20).map("".join))
def test_a_text_from_which_something_was_read_has_something_marked(text):
    read = memory_markers(text).found or markers(text).events or markers(text).cooldowns
    assert not read or {part.kind for part in parts(text)} & {"memory", "event", "cooldown"}


def test_a_marker_is_its_bracket():
    assert parts("a. [EVENT:info] b") == [Part("", "a. "), Part("event", "[EVENT:info]"), Part("", " b")]
    assert parts("- a\r\n- [EVENT:info] b")[1] == Part("event", "[EVENT:info]")
    assert parts("no [brackets]") == [Part("", "no [brackets]")]


def test_what_is_stored_is_marked_rather_than_what_is_malformed():
    text = "[MEMORY:mood] a. [MEMORY:timing:home.assistant] b"
    assert [part.text for part in parts(text) if part.kind] == ["[MEMORY:timing:home.assistant]"]


def test_a_marker_that_is_not_read_is_not_marked():
    for text in ("`[EVENT:info] a`", "> a\n[EVENT:info] b", "The page says [EVENT:info] b", "    [EVENT:info] b"):
        assert parts(text) == [Part("", text)]
