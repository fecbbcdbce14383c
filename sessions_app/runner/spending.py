"""Count what a session spent: what its result lines state, and an estimate of the messages after the last one. Pure.

A result line replaces the estimate. Its cost is cumulative; its turns and usage are its own. An estimate counts each
message of the model once, with the usage of its last line, at the model's price; the CLI writes the first count of a
message's output there, so an estimate is rather low.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from claudeops.lib.prices import Tokens, price_of
from sessions_app.runner.accept import MOST_DOLLARS, MOST_TOKENS, MOST_TURNS, added
from sessions_app.runner.stream import Message, Result

OPEN = 64
"""Messages that may still get another line: those of subagents run beside each other."""


@dataclass(slots=True)
class Spending:
    """`open` holds the newest messages: id, dollars, turns, tokens, its turn, what log entries have of it.

    `carried_usd` is what the conversation had cost before the session that continues it: result lines include it.

    `messages` is how many the estimate counts, `turns` how many messages the main thread has had.
    """

    carried_usd: float = 0.0
    stated_usd: float = 0.0
    stated_turns: int = 0
    stated_usage: dict[str, int] = field(default_factory=dict)
    estimated_usd: float = 0.0
    estimated_turns: int = 0
    estimated_usage: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    turns: int = 0
    open: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cost_usd(self) -> float:
        return min(self.stated_usd + self.estimated_usd + sum(one["usd"] for one in self.open), MOST_DOLLARS)

    @property
    def num_turns(self) -> int:
        return min(self.stated_turns + self.estimated_turns + sum(one["turns"] for one in self.open), MOST_TURNS)

    @property
    def usage(self) -> dict[str, int]:
        found = dict(self.stated_usage)
        for one in (self.estimated_usage, *(one["usage"] for one in self.open)):
            _add(found, one)
        return found

    def message(self, message: Message) -> dict[str, Any]:
        """Count one line of a message and return it. `guessed`: its price is one, its model is not in the table."""
        known = next((one for one in reversed(self.open) if message.id and one["id"] == message.id), None)
        if known is None:
            self.turns += message.main
            known = {"id": message.id, "usd": 0.0, "turns": int(message.main), "usage": {}, "stated": False}
            known |= {"turn": self.turns, "listed": [0, 0.0]}
            self.open.append(known)
            self.messages += 1
            self._close(len(self.open) - OPEN)
        known["guessed"] = False
        if message.tokens is None or known["stated"]:
            return known
        price = price_of(message.model)
        known["usd"] = min(price.of(message.tokens), MOST_DOLLARS)
        known["usage"] = _usage(message.tokens)
        known["guessed"] = not price.known
        return known

    def result(self, result: Result) -> None:
        """Replace the estimate by what a result line states; its cost stays estimated when the line states none."""
        if result.cost_usd is None:
            self.stated_usd = self.cost_usd
        else:
            self.stated_usd = max(self.stated_usd, result.cost_usd - self.carried_usd)
            self.messages = 0
        self.stated_turns = added(self.stated_turns, result.num_turns, MOST_TURNS)
        _add(self.stated_usage, result.usage)
        self.estimated_usd, self.estimated_turns, self.estimated_usage = 0.0, 0, {}
        for one in self.open:
            one.update(usd=0.0, turns=0, usage={}, stated=True)

    def state_cost(self, usd: float) -> None:
        """Take the cost so far that a transcript states; its turns and usage stay counted from messages."""
        self.stated_usd = max(self.stated_usd, usd)
        self.estimated_usd, self.messages = 0.0, 0
        for one in self.open:
            one.update(usd=0.0, stated=True)

    def _close(self, number: int) -> None:
        for one in self.open[: max(number, 0)]:
            self.estimated_usd += one["usd"]
            self.estimated_turns += one["turns"]
            _add(self.estimated_usage, one["usage"])
        del self.open[: max(number, 0)]


def to_list(counted: dict[str, Any]) -> tuple[int, float]:
    """Return the tokens and dollars of a message that no log entry has yet, and note that one has them now."""
    if counted["stated"]:
        return 0, 0.0
    tokens, usd = sum(counted["usage"].values()), counted["usd"]
    listed_tokens, listed_usd = counted.get("listed", (tokens, usd))  # a version that did not list stored it
    counted["listed"] = [tokens, usd]
    return max(tokens - listed_tokens, 0), max(usd - listed_usd, 0.0)


def _usage(tokens: Tokens) -> dict[str, int]:
    """Name the tokens as the result line does."""
    return {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.write_5m + tokens.write_1h,
        "cache_read_input_tokens": tokens.read,
        "output_tokens": tokens.output,
    }


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        total[name] = added(total.get(name, 0), number, MOST_TOKENS)
