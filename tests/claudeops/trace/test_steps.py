"""The eight steps, the sentence and the ranking: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.features.trace.ranking import Row, around, confirmations_needed, ranking_of
from claudeops.features.trace.steps import End, Name, Outcome, Seen, joined, ordinal, sentence, steps_of, would_have
from memories.injection.budget import Line, choose

seen_of = st.builds(Seen, st.text(min_size=1, max_size=20), is_low=st.booleans(), is_unknown=st.booleans())


@given(st.sampled_from(End), st.dictionaries(st.sampled_from(Name), seen_of))
def test_there_are_eight_steps_in_order_and_one_of_them_ended(end, seen):
    steps = steps_of(seen, end)
    assert [step.name for step in steps] == list(Name)
    ended = [step.name for step in steps if step.outcome is Outcome.ENDED]
    assert ended == [end.step] if end.step else not ended


@given(st.sampled_from(End), st.dictionaries(st.sampled_from(Name), seen_of))
def test_nothing_behind_the_end_is_reached_and_nothing_before_it_is_left_out(end, seen):
    outcomes = [step.outcome for step in steps_of(seen, end)]
    if Outcome.ENDED in outcomes:
        place = outcomes.index(Outcome.ENDED)
        assert set(outcomes[place + 1 :]) <= {Outcome.NOT_REACHED}
        assert Outcome.NOT_REACHED not in outcomes[:place]


@given(st.sampled_from(End), st.none() | st.integers(1), st.none() | st.integers(1))
def test_every_end_has_one_sentence(end, memory, session):
    said = sentence(end, memory=memory, session=session)
    assert said.endswith(".")
    assert "{" not in said
    assert ". " not in said.replace("It knew. ", "")


def test_no_brace_in_a_reason_is_filled_in():
    assert "{memory}" in sentence(End.HELD, memory=1, reason="{memory} {0}")


@pytest.mark.parametrize(
    ("number", "said"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (21, "21st"), (113, "113th")]
)
def test_ordinals(number, said):
    assert ordinal(number) == said


def test_clauses_are_joined_as_a_sentence():
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"]) == "a, b or c"
    assert would_have([]) == ""
    assert would_have(["if b", "with 3 more tokens"]) == "It would have been told if b or with 3 more tokens."


def entry(pk, confidence, reason="by confidence", text="Restarting takes a while and then some"):
    return {"id": pk, "service": "jellyfin", "category": "timing", "confidence": confidence, "observation": text,
            "reason": reason}  # fmt: skip


confidences = st.lists(st.integers(30, 100).map(lambda n: n / 100), min_size=1, max_size=25)


def receipt_of(levels, budget):
    """Make the columns of a receipt as `injection.ops.build` leaves them."""
    entries = sorted(
        (entry(pk, level) for pk, level in enumerate(levels, 1)), key=lambda e: (-e["confidence"], e["id"])
    )
    lines = [Line(e["id"], e["service"], e["category"], e["observation"], e["confidence"]) for e in entries]
    chosen = choose(lines, budget, eligible=len(lines))
    told = len(chosen.included)
    full = [one | {"reason": f"the budget of {budget:,} tokens is full"} for one in entries[told:]]
    return {
        "included": entries[:told],
        "left_out": full,
        "budget": budget,
        "tokens": chosen.tokens,
        "counts": {"eligible": len(lines)},
    }


@given(confidences, st.integers(20, 400))
def test_the_ranking_tells_what_the_block_told_and_needs_exactly_what_it_says(levels, budget):
    ranking = ranking_of("ops", receipt_of(levels, budget))
    assert len(ranking.rows) == len(levels)
    for rank in range(1, len(levels) + 1):
        assert ranking.fits(rank) == (rank <= ranking.told)
        if rank > ranking.told:
            wider = choose([row.line for row in ranking.rows], ranking.needed(rank), eligible=len(levels))
            assert len(wider.included) >= rank
            narrower = choose([row.line for row in ranking.rows], ranking.needed(rank) - 1, eligible=len(levels))
            assert len(narrower.included) < rank


@given(confidences, st.integers(20, 400), st.data())
def test_the_confirmations_that_are_named_would_have_told_it(levels, budget, data):
    ranking = ranking_of("ops", receipt_of(levels, budget))
    pk = data.draw(st.sampled_from(range(1, len(levels) + 1)))
    row = ranking.rows[(ranking.rank(pk) or 1) - 1]
    raised = [min(1.0, round(row.confidence + 0.1 * n, 6)) for n in (1, 2, 3)]
    found = confirmations_needed(ranking, row, raised)
    if found is None:
        return
    count, level, rank = found
    changed = [level if one == pk else before for one, before in enumerate(levels, 1)]
    again = ranking_of("ops", receipt_of(changed, budget))
    assert again.rank(pk) == rank
    assert rank <= again.told
    assert count <= 3


def test_a_confirmation_that_makes_it_as_sure_as_another_lets_the_older_one_win():
    ranking = ranking_of("ops", receipt_of([0.3, 0.94, 1.0], 51))
    assert confirmations_needed(ranking, ranking.rows[1], [1.0]) == (1, 1.0, 1)


def test_a_memory_that_no_receipt_names_is_put_where_its_score_says():
    ranking = ranking_of("ops", receipt_of([0.9, 0.5], 4000))
    found = ranking.with_(Row(9, "caddy", "timing", "Caddy reloads", 0.7, 0.7))
    assert found.rank(9) == 2
    assert found.eligible == 3


def test_the_rows_around_the_memory_show_the_cut():
    ranking = ranking_of("ops", receipt_of([0.9 - n / 100 for n in range(20)], 120))
    shown = around(ranking, 20)
    assert [row.rank for row in shown if row.is_it] == [20]
    assert sum(row.is_cut for row in shown) == 1
    assert shown[0].rank == 1


@given(st.lists(st.one_of(st.none(), st.text(), st.integers(), st.dictionaries(st.text(), st.integers()))))
def test_what_else_stands_in_a_receipt_is_passed_over(rows):
    assert ranking_of("ops", {"included": rows, "left_out": rows}).told <= len(rows)
