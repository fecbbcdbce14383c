"""Parts of a transcript: without gaps, of bounded size, each with words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.transcripts.arrivals import Piece, cut

lines = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 30), st.booleans()), max_size=40)


def pieces_of(lines):
    found, end = [], 0
    for length, size, speaks in lines:
        end += length
        found.append(Piece(end, size, speaks))
    return found


@given(lines, st.integers(0, 300))
def test_parts_follow_each_other_from_the_mark_and_end_with_lines(lines, start):
    pieces = pieces_of(lines)
    parts = cut(pieces, start, most=60)
    assert [begin for begin, _ in parts] == [start, *(end for _, end in parts)][: len(parts)]
    assert all(begin < end for begin, end in parts)
    assert {end for _, end in parts} <= {piece.end for piece in pieces}


@given(lines)
def test_each_part_has_words_and_fits_unless_its_words_come_late(lines):
    pieces = pieces_of(lines)
    for begin, end in cut(pieces, 0, most=60):
        inside = [piece for piece in pieces if begin < piece.end <= end]
        assert any(piece.speaks for piece in inside)
        first = next(place for place, piece in enumerate(inside) if piece.speaks)
        assert sum(piece.size for piece in inside[first:]) <= max(60, inside[first].size)


@given(lines)
def test_no_words_are_left_behind(lines):
    pieces = pieces_of(lines)
    parts = cut(pieces, 0, most=60)
    last = parts[-1][1] if parts else 0
    assert not any(piece.speaks for piece in pieces if piece.end > last)


@given(lines, st.data())
def test_a_file_that_is_looked_at_while_it_grows_is_cut_without_gaps(lines, data):
    pieces = pieces_of(lines)
    mark, parts = 0, []
    for seen in [*sorted(data.draw(st.lists(st.integers(0, len(pieces)), max_size=4))), len(pieces)]:
        parts += cut(pieces[:seen], mark, most=60)
        mark = parts[-1][1] if parts else 0
    assert [begin for begin, _ in parts] == [0, *(end for _, end in parts)][: len(parts)]
    assert not any(piece.speaks for piece in pieces if piece.end > mark)
