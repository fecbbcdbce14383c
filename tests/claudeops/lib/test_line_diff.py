"""Line diffs: nothing is lost, equal stretches are folded, words are marked within a changed line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.diff import DiffLine, line_diff

LINES = st.lists(st.sampled_from(["a", "b", "c d", "c e", ""]), max_size=20).map("\n".join)


def shown(lines: list[DiffLine]) -> list[str]:
    signs = {"same": " ", "gone": "-", "new": "+"}
    return [f"={line.fold}" if line.fold else signs[line.kind] + text_of(line) for line in lines]


def text_of(line: DiffLine) -> str:
    return "".join(piece.text for piece in line.pieces)


def test_equal_texts_have_no_lines():
    assert line_diff("a\nb\n", "a\nb") == []


def test_a_changed_line_has_two_equal_ones_beside_it_and_the_rest_is_folded():
    before = "\n".join(f"line {n}" for n in range(20))
    found = line_diff(before, before.replace("line 10", "line ten"))
    assert shown(found) == ["=8", " line 8", " line 9", "-line 10", "+line ten", " line 11", " line 12", "=7"]
    gone, new = found[3], found[4]
    assert [(piece.kind, piece.text) for piece in gone.pieces] == [("same", "line "), ("gone", "10")]
    assert [(piece.kind, piece.text) for piece in new.pieces] == [("same", "line "), ("new", "ten")]


def test_a_fold_never_hides_one_line():
    assert shown(line_diff("a\nx", "a\ny")) == [" a", "-x", "+y"]


@given(LINES, LINES)
def test_what_is_gone_and_folded_is_the_first_text_what_is_new_and_folded_the_second(before, after):
    found = line_diff(before, after)
    if before.splitlines() == after.splitlines():
        assert found == []
        return
    same = sum(line.fold or 1 for line in found if line.kind == "same")
    for text, kind in ((before, "gone"), (after, "new")):
        lines = text.splitlines()
        assert same + sum(line.kind == kind for line in found) == len(lines)
        own = [text_of(line) for line in found if line.kind == kind]
        rest = iter(lines)
        assert all(line in rest for line in own)  # in their order
