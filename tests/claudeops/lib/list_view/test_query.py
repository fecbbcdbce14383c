"""The language of the query bar: what is written is read back, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.list_view.query import Query, Token, format_query, parameters, parse, unknown_tokens

TEXTS = st.text(alphabet=st.one_of(st.sampled_from('ab:"\\ <>_\t'), st.characters(codec="utf-8")), max_size=20)
NAMES = st.from_regex(r"[a-z][a-z_]{0,7}", fullmatch=True)
QUERIES = st.builds(
    Query,
    st.lists(st.builds(Token, NAMES, TEXTS), max_size=4).map(tuple),
    st.lists(TEXTS, max_size=4).map(tuple),
)


@given(QUERIES)
def test_what_is_written_is_read_back(query):
    assert parse(format_query(query)) == query


@given(TEXTS)
def test_the_canonical_form_of_any_text_stays_as_it_is(text):
    canonical = format_query(parse(text))
    assert format_query(parse(canonical)) == canonical


@given(st.lists(st.from_regex(r"[^\s\":\\]{1,8}", fullmatch=True), max_size=6))
def test_plain_words_stay_words_in_their_order(words):
    assert parse("  ".join(words)) == Query(words=tuple(words))


@pytest.mark.parametrize(
    ("text", "tokens", "words"),
    [
        ("service:jellyfin fades:<14d slow disk", [("service", "jellyfin"), ("fades", "<14d")], ["slow", "disk"]),
        ('text:"two words" "service:caddy"', [("text", "two words")], ["service:caddy"]),
        ('say:"a \\"b\\" c', [("say", 'a "b" c')], []),
        ("service: 10.8.0.1:8080 12:30", [("service", "")], ["10.8.0.1:8080", "12:30"]),
    ],
)
def test_examples(text, tokens, words):
    assert parse(text) == Query(tuple(Token(*token) for token in tokens), tuple(words))


def test_an_unknown_token_is_named_with_the_nearest_one_and_the_way_to_search_for_it():
    said = unknown_tokens(parse("serivce:caddy status:held http://nas"), ["service", "status"])
    assert said == [
        'There is no filter serivce:. Did you mean service:? To search for this text, quote it: "serivce:caddy"',
        'There is no filter http:. To search for this text, quote it: "http://nas"',
    ]


def test_the_last_value_of_a_name_counts_and_an_empty_one_sets_nothing():
    assert parameters(parse("a:1 a:2 b: x y"), "text") == {"a": "2", "text": "x y"}
