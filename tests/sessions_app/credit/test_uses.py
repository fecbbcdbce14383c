"""Which memories an agent says that it used. Pure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.credit.uses import FEWEST, LARGEST_ID, RUN, answered, content_words, named, quoted

KNOWN = "Jellyfin takes sixty seconds after every restart before health checks succeed again"


def test_a_memory_is_named_in_the_agents_own_plain_text_alone(subtests):
    for text, ids in [
        ("As [m42] says, I waited.", [42]),
        ("[m42] and [m7], once more [m42]", [42, 7]),
        ("Used [m1, m2,m3].", [1, 2, 3]),
        ("- **[m5]** held", [5]),
        ("`[m42]`", []),
        ("```\n[m42]\n```", []),
        ("    [m42]", []),
        ("> [m42]\nand lazily [m43]", []),
        ('It wrote "use [m42] always" there.', []),
        ("| [m42] |\n|---|\n| [m43] |", []),
        ("<q>[m42]</q>", []),
        ("[m0] [m-1] [m 4] [M42] m42 [m4x] [mm4]", []),
        (f"[m{LARGEST_ID + 1}] [m{'9' * 30}]", []),
        ("[m٤٢]", []),
        ("", []),
    ]:
        with subtests.test(str(text)):
            assert named(text) == ids


@given(st.text(max_size=300))
def test_any_text_can_be_read(text):
    assert all(0 < one <= LARGEST_ID for one in named(text + " [m12]" + text))


@given(st.lists(st.one_of(st.integers(), st.booleans(), st.none(), st.text(), st.floats(), st.lists(st.integers()))))
def test_an_answer_may_hold_anything_and_numbers_alone_are_ids(items):
    ids, dropped = answered(items)
    assert all(type(one) is int and 0 < one <= LARGEST_ID for one in ids)
    assert len(set(ids)) == len(ids)
    assert dropped <= len(items)


def test_true_is_no_id():
    assert answered([True, 1, "2", 3.0, None, 0, -4, LARGEST_ID + 1]) == ([1], 7)


def test_a_run_of_content_words_is_a_quotation_and_less_is_none():
    assert (
        quoted("It is known that jellyfin takes 60; after every restart before health checks succeed.", {1: KNOWN})
        == []
    )
    assert quoted("So the sixty seconds after every restart before the health checks succeed.", {1: KNOWN}) == [1]
    assert quoted("> sixty seconds after every restart before health checks succeed again", {1: KNOWN}) == []
    assert quoted("```\n" + KNOWN + "\n```", {1: KNOWN}) == []


def test_a_short_memory_is_quoted_as_a_whole_and_a_shorter_one_never():
    assert quoted("I restarted caddy, wireguard and nginx.", {1: "caddy wireguard nginx", 2: "caddy wireguard"}) == [1]


WORDS = st.lists(st.from_regex(r"[b-df-hj-np-tv-xz]{4,8}", fullmatch=True), min_size=RUN, max_size=30)


@given(WORDS, st.data())
def test_every_long_enough_run_is_found_and_a_text_without_one_is_not(words, data):
    known = " ".join(words)
    own = content_words(known)
    start = data.draw(st.integers(0, max(len(own) - RUN, 0)))
    run = own[start : start + RUN]
    if len(run) >= FEWEST:
        assert quoted("Before it: " + " ".join(run).upper() + ", and after it.", {7: known}) == [7]
    assert quoted(" ".join(f"{word} zzqzz" for word in own), {7: known}) == []
