"""A hit's marked text and the shares of its score. No database."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.recall.query import index_terms
from memories.recall.results import Parts
from memories.web.recall import marked, shares


@given(st.text(max_size=80), st.lists(st.sampled_from(["restart", "jellyfin", "long"]), unique=True))
def test_the_stretches_spell_the_text(text, searched):
    assert "".join(piece.text for piece in marked(text, searched)) == text


def test_words_are_marked_in_each_of_their_forms_and_nothing_else():
    searched = index_terms("restart jellyfin")
    found = [
        piece.text
        for piece in marked("Restarting Jellyfin-web twice: jelly is no restarts", searched)
        if piece.is_match
    ]
    assert found == ["Restarting", "Jellyfin-web", "restarts"]


numbers = st.floats(0, 2, allow_nan=False)


@given(numbers, st.none() | st.floats(-1, 1), st.dictionaries(st.sampled_from(["age", "confidence", "usage"]), numbers))
def test_the_shares_are_within_the_axis_and_add_up_to_the_score(fused, cosine, boosts):
    meaning = max(0.0, cosine or 0.0)
    final = fused + meaning + sum(boosts.values())
    parts = Parts(fused=fused + meaning, cosine=cosine, boosts=boosts, final=final)
    whole = max(1.0, final)
    found = shares(parts, whole)
    assert sum(share.value for share in found) == pytest.approx(final, abs=1e-9)
    assert all(share.width >= 0 for share in found)
    assert found[-1].start + found[-1].width <= 100.000001
    for one, following in pairwise(found):
        assert following.start == pytest.approx(one.start + one.width)


def test_a_stale_memorys_parts_are_lowered_with_its_score():
    found = shares(Parts(fused=0.8, cosine=0.4, stale=True, final=0.4), 1.0)
    assert {share.name: round(share.value, 6) for share in found if share.value} == {"words": 0.2, "meaning": 0.2}
