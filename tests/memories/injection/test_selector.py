"""The one selector: order, room, and what is told already. No database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from memories.injection.selector import keys_of, select


@dataclass(frozen=True)
class Text:
    observation: str


def block(texts: Sequence[Text]) -> tuple[str, int]:
    text = "|".join(one.observation for one in texts)
    return text, len(text) + 5


WORDS = st.lists(st.text("abc ", max_size=6).map(Text), max_size=12)


@given(WORDS, st.integers(0, 40), st.none() | st.integers(0, 8), st.lists(st.text("abc ", max_size=6), max_size=3))
def test_what_is_new_is_told_in_its_order_until_there_is_no_room(candidates, budget, limit, said):
    told = keys_of(said)
    found = select(iter(candidates), block, budget=budget, limit=limit, told=told)
    new = [one for one in candidates if not keys_of([one.observation]) <= told]
    assert [*found.included, *found.left_out] == new
    assert list(found.again) == [one for one in candidates if one not in new]
    assert len(found.included) <= (len(new) if limit is None else limit)
    assert (found.text, found.tokens) == (block(found.included) if found.included else ("", 0))
    assert found.tokens <= budget
    assert bool(found.why) is bool(found.left_out)
    if found.left_out and len(found.included) != limit:
        assert block([*found.included, found.left_out[0]])[1] > budget


def test_no_more_is_read_than_is_named_and_what_fits_already_stays():
    candidates = iter([Text(letter * 10) for letter in "abcdefgh"])
    found = select(candidates, block, budget=40, after=[Text("x" * 10)], named=2)
    assert [one.observation[0] for one in found.included] == ["x", "a", "b"]
    assert [one.observation[0] for one in found.left_out] == ["c", "d"]
    assert next(candidates).observation[0] == "e"


def test_case_blanks_and_the_last_full_stop_make_no_other_text():
    found = select(
        [Text("The  lock IS held."), Text("The lock is free")], block, budget=99, told=keys_of(["the lock is held"])
    )
    assert [one.observation for one in found.included] == ["The lock is free"]
