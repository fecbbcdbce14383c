"""Text to terms: the same on every database, and safe with whatever a person or an agent types."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memories.capture.text import join_lettered
from memories.recall import query
from memories.recall.query import LONGEST_TERM, index_terms, normalise, read_query, stands_whole, words


def test_words_of_one_stem_are_one_term():
    assert index_terms("restarting restarted restarts") == ["restart"] * 3


def test_stop_words_are_not_indexed():
    assert index_terms("It is the one that was before") == ["one"]


@pytest.mark.parametrize(("name", "other"), [("team A", "team B"), ("node I", "node J"), ("zone-a", "zone-b")])
def test_a_lone_letter_makes_another_term(name, other):
    of = {wanted: set(index_terms(f"it runs on {wanted}.")) for wanted in (name, other)}
    assert of[name] - of[other] and of[other] - of[name]
    assert set(read_query(f"what about {name}?").terms) & (of[name] - of[other])


@pytest.mark.parametrize(
    "text",
    ["the group I was in", "move the node a bit", "node v1.2", "team B-side", "the node's a mess", "the host I use"],
)
def test_an_article_or_a_pronoun_is_no_letter_of_a_name(text):
    assert join_lettered(text) == text


def test_a_query_of_nothing_but_stop_words_is_still_searched():
    assert read_query("what is it").terms == ("what", "is", "it")


def test_an_identifier_is_one_term_and_must_stand_whole(subtests):
    for identifier in [
        "wg0",
        "2.1.330",
        "10.0.0.5:8080",
        "/var/lib/docker",
        "home-assistant",
        "max_connections",
        "nas.lan",
        "eth0.20",
    ]:
        with subtests.test(str(identifier)):
            query = read_query(f"what about {identifier}?")
            assert set(query.terms) & set(index_terms(f"see {identifier}, it failed"))
            assert stands_whole(query.wholes, f"It was {identifier}.")
            assert not stands_whole(query.wholes, f"It was {identifier}9")


def test_the_parts_of_an_identifier_are_found_too():
    assert {"home", "assist", "docker"} <= set(index_terms("home-assistant in /var/lib/docker"))


def test_the_parts_of_a_version_are_not():
    assert "2" not in index_terms("version 2.1.330")


def test_a_phrase_of_common_words_is_found_whole():
    query = read_query("no route to host")
    assert stands_whole(query.wholes, "ssh says: No route to host, at night")
    assert not stands_whole(query.wholes, "the host has no default route")


def test_a_quoted_part_of_a_question_must_stand_whole():
    query = read_query('which service says "connection reset by peer" at night')
    assert query.literal
    assert stands_whole(query.wholes, "Plex logs: connection reset by peer.")


def test_case_is_folded_and_accents_are_kept():
    assert index_terms("CAFÉ") == index_terms("café")
    assert index_terms("cafe\u0301") == index_terms("café")
    assert index_terms("cafe") != index_terms("café")


@pytest.mark.parametrize("text", ["", "   ", "\x00", "😀 🎉", "\"'`;--()*", "\ud83d"])
def test_what_holds_no_word_has_no_terms(text):
    assert read_query(text).terms == ()


def test_a_query_of_a_hundred_kilobytes_is_cut():
    assert 0 < len(read_query("tunnel restarts " * 7000).terms) < 10


@given(st.text() | st.text(alphabet="ab1./_:-'@+ "))
@example("/etc/restic/.pass")
@example("a//b '-' ..")
def test_a_term_is_ascii_that_no_database_can_take_apart(text):
    for term in index_terms(text):
        assert re.fullmatch(r"[a-z0-9_]+", term)
        assert len(term) <= LONGEST_TERM


@given(st.text())
def test_normalising_twice_is_normalising_once(text):
    assert normalise(normalise(text)) == normalise(text)


TYPED = st.text() | st.text(alphabet="abA1é./_:-' \t\n\x00\x1f\x7f\u00ad")


@given(st.lists(TYPED, max_size=4), TYPED)
@example(["a b"], "A \t b")
@example(["a b"], "a\x00b")
@example(["a"], "a\x1f.a")
@example(["b a", "a.b"], "a.b.a a b")
def test_a_quick_look_for_whole_phrases_finds_what_a_plain_one_finds(phrases, text):
    wholes = [whole for whole in map(normalise, phrases) if whole]
    assert stands_whole(wholes, text) == any(stands_plainly(whole, normalise(text)) for whole in wholes)
    parts = [whole for whole in (normalise(text)[at : at + 3].strip() for at in range(4)) if whole]
    assert stands_whole(parts, text) == any(stands_plainly(whole, normalise(text)) for whole in parts)


def stands_plainly(whole: str, text: str) -> bool:
    """Each place where it stands, looked at from its two ends."""
    for start in range(len(text)):
        end = start + len(whole)
        before = start > 0 and query._joins(text, start - 1, -1)
        after = end < len(text) and query._joins(text, end, 1)
        if text[start:end] == whole and not before and not after:
            return True
    return False


@given(TYPED)
def test_words_of_a_text_are_the_same_each_time_and_nobodys_to_change(text):
    first = words(text)
    kept = list(first)
    first.append("more")
    assert words(text) == kept
