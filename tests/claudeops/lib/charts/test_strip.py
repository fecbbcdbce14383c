"""The strip of the last runs: each run has its place and its shape, and the words say the same numbers."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from claudeops.env import BASE_DIR
from claudeops.lib.charts.strip import HEIGHT, OUTCOMES, STEP, WIDTH, Run, strip

outcomes = st.lists(st.sampled_from(sorted(OUTCOMES)), max_size=30)


def runs(names: list[str]) -> list[Run]:
    return [Run(outcome, f"#{n} {outcome}", f"/sessions/{n}") for n, outcome in enumerate(names, start=1)]


@given(outcomes, st.integers(1, 25))
def test_the_last_runs_stand_side_by_side_at_the_right_end(names, most):
    found = strip(runs(names), most=most)
    assert [tick.run.outcome for tick in found.ticks] == names[-most:]
    places = [tick.x for tick in found.ticks]
    assert all(right - left == STEP for left, right in pairwise(places))
    assert not places or (places[0] >= 0 and places[-1] + WIDTH == found.width)
    assert found.width == most * STEP - (STEP - WIDTH)


@given(outcomes)
def test_the_words_count_every_run_that_is_drawn(names):
    found = strip(runs(names))
    total, *parts = [int(number) for number in re.findall(r"\d+", found.said)] or [0]
    assert total == sum(parts) == len(found.ticks)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["ok"] * 17 + ["failed", "escalated", "failed"], "20 runs: 17 completed, 2 failed, 1 escalated"),
        (["running"], "1 run: 1 running"),
        ([], "No runs yet"),
    ],
)
def test_the_words_are_those_of_a_person(names, said):
    assert strip(runs(names)).said == said


def test_an_outcome_without_a_shape_is_refused():
    with pytest.raises(KeyError):
        strip([Run("queued", "#1 queued", "/sessions/1")])


def test_every_outcome_has_a_shape_in_the_icons():
    icons = (BASE_DIR / "templates" / "_icons.html").read_text()
    assert {f"t-{outcome}" for outcome in OUTCOMES} <= set(re.findall(r'symbol id="([\w-]+)"', icons))


def test_each_tick_leads_to_its_run_and_hostile_names_stay_text():
    drawn = strip([Run("failed", '#7 failed: </title><script>alert("x")</script>', "/sessions/7"), *runs(["ok"])])
    html = render_to_string("charts/_strip.html", {"strip": drawn})
    assert re.findall(r'<a href="([^"]+)" tabindex="-1"', html) == ["/sessions/7", "/sessions/1"]
    assert "<script" not in html
    assert '<span class="sr">2 runs: 1 completed, 1 failed</span>' in html
    assert f'height="{HEIGHT}"' in html
    assert "style=" not in html
