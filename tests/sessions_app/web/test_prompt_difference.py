"""The memories of two prompts compared: `sessions_app.web.prompt_difference.compare`. No database."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.web.prompt_difference import compare

orders = st.lists(st.integers(1, 30), unique=True, max_size=20)


def entries(ids) -> list[dict]:
    return [{"id": pk, "confidence": 0.5, "observation": f"Memory {pk}"} for pk in ids]


@given(orders, orders)
def test_each_memory_comes_goes_or_stays(now, then):
    found = compare(entries(now), entries(then), dict.fromkeys(then, "gone"))
    assert [row.memory_id for row in found.rows if not row.before] == [pk for pk in now if pk not in then]
    assert [row.memory_id for row in found.rows if not row.after] == [pk for pk in then if pk not in now]
    assert (found.come + found.same, found.go + found.same, found.changed) == (len(now), len(then), 0)
    assert all(bool(row.why) == (not row.after) for row in found.rows)


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_pieces_of_a_changed_memory_spell_both_lines(one, other):
    before, after = ({"id": 1, "confidence": 0.5, "category": "timing", "observation": text} for text in (one, other))
    for row in compare([after], [before], {}).rows:
        assert "".join(piece.text for piece in row.before).startswith("[general, timing, 0.5]")
        assert "".join(piece.text for piece in row.before).endswith(one or "memory 1")
        assert "".join(piece.text for piece in row.after).endswith(other or "memory 1")


def test_a_change_of_confidence_is_a_difference_only_as_it_is_shown():
    then = entries([1, 2])
    now = [{**then[0], "confidence": 0.75}, {**then[1], "confidence": 0.5001}]
    found = compare(now, then, {})
    assert [row.memory_id for row in found.rows] == [1]
    assert found.same == 1
