"""An estimate counts each message once; a result line replaces it."""

from __future__ import annotations

import pytest

from claudeops.lib.prices import Tokens
from sessions_app.runner.accept import MOST_DOLLARS, MOST_TURNS
from sessions_app.runner.outcome import OPEN, Spending
from sessions_app.runner.stream import Message, Result

SONNET = "claude-sonnet-5-5"  # $2 and $10 for a million tokens


def message(id_: str, *, input_: int = 1_000_000, output: int = 0, main: bool = True, model: str = SONNET) -> Message:
    return Message(id_, model, main, "", Tokens(input=input_, output=output))


def result(usd: float | None, turns: int = 1, **usage: int) -> Result:
    return Result("success", False, "", turns, 0, usd, usage)


def test_a_message_counts_once_with_its_last_usage():
    spent = Spending()
    spent.message(message("a", output=1))
    spent.message(message("a", output=100_000))
    spent.message(message("b"))
    assert (spent.cost_usd, spent.num_turns, spent.messages) == (pytest.approx(2 + 1 + 2), 2, 2)
    assert spent.usage["output_tokens"] == 100_000


def test_a_subagents_message_costs_and_is_no_turn():
    spent = Spending()
    spent.message(message("a", main=False))
    assert (spent.cost_usd, spent.num_turns) == (2, 0)


def test_a_result_replaces_the_estimate_and_the_next_messages_come_on_top():
    spent = Spending()
    spent.message(message("a"))
    spent.result(result(1.5, 4, output_tokens=7))
    assert (spent.cost_usd, spent.num_turns, spent.messages, spent.usage) == (1.5, 4, 0, {"output_tokens": 7})
    spent.message(message("a"))  # another line of a message that is paid
    spent.message(message("b"))
    assert (spent.cost_usd, spent.num_turns, spent.messages) == (3.5, 5, 1)
    spent.result(result(2.75, 2, output_tokens=3))  # its cost is cumulative, its turns are its own
    assert (spent.cost_usd, spent.num_turns, spent.messages, spent.usage) == (2.75, 6, 0, {"output_tokens": 10})


def test_a_result_without_a_cost_leaves_the_estimate():
    spent = Spending()
    spent.message(message("a"))
    spent.result(result(None, 3))
    assert (spent.cost_usd, spent.num_turns, spent.messages) == (2, 3, 1)


def test_the_cost_that_a_transcript_states_replaces_the_estimate_of_the_cost_alone():
    spent = Spending()
    spent.message(message("a", output=5))
    spent.state_cost(1.25)
    assert (spent.cost_usd, spent.num_turns, spent.messages) == (1.25, 1, 0)
    assert spent.usage["output_tokens"] == 5
    spent.message(message("b"))
    assert (spent.cost_usd, spent.num_turns, spent.messages) == (3.25, 2, 1)


def test_old_messages_are_summed_so_that_the_state_stays_small():
    spent = Spending()
    for number in range(5 * OPEN):
        spent.message(message(str(number)))
    assert len(spent.open) == OPEN
    assert (spent.cost_usd, spent.num_turns) == (pytest.approx(10.0 * OPEN), 5 * OPEN)


def test_sums_stay_within_their_columns():
    spent = Spending()
    for _ in range(3):
        spent.result(result(MOST_DOLLARS, MOST_TURNS, output_tokens=2**53 - 1))
        spent.message(message("", input_=2**53 - 1))
    assert (spent.cost_usd, spent.num_turns) == (MOST_DOLLARS, MOST_TURNS)
    assert spent.usage["output_tokens"] == 2**53 - 1


def test_a_guessed_price_is_reported():
    assert Spending().message(message("a", model="claude-opus-99"))["guessed"]
    assert not Spending().message(message("a"))["guessed"]


def test_a_continued_conversation_costs_what_it_costs_beyond_the_earlier_part():
    spent = Spending(carried_usd=0.5)
    spent.message(message("a"))
    assert spent.cost_usd == 2
    spent.result(result(0.75))
    assert spent.cost_usd == 0.25
