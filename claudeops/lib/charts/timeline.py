"""Compute the timeline of a run: its turns and calls as rows with bars in per cent of the run's length. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

UNFOLDED = 30
"""Rows up to which nothing is folded."""
HEAD_ROWS, TAIL_ROWS = 12, 6
"""Rows that stay visible before and after what is folded."""
MOST_ROWS = 240
"""Rows at most, folded ones included: a page stays below 200 KB."""
MOST_CALLS = 40
"""Calls of one turn at most."""
LEAST_WIDTH = 0.4
"""Per cent of the width, so that a short call can be seen."""
MOST_TICKS = 7
_LONGER = (30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `start` and `end` are seconds from the start of the run; `end` is None without a result.

    `outcome` is ok, failed, running or none (it ended without a result); `word` says it: "exit 1". `depth` is 0 for the
    main thread's own calls, 1 for those of a subagent. `line` is its line in the log.
    """

    line: int
    label: str
    tool: str
    start: float
    end: float | None
    outcome: str = "ok"
    word: str = ""
    depth: int = 0
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn, or with `last` the turns up to that number without their calls. Tokens and dollars may be unknown.

    `start` is where the turn before ended (seconds from the start of the run). `word` says what went wrong with the
    turn itself. `more_calls` and `errors` count what is not among `calls`.
    """

    number: int
    line: int
    label: str
    start: float
    end: float
    tokens: int | None = None
    cost_usd: float | None = None
    word: str = ""
    calls: tuple[Call, ...] = ()
    last: int = 0
    more_calls: int = 0
    errors: int = 0

    @property
    def turns(self) -> int:
        return max(self.last - self.number + 1, 1)

    @property
    def failed(self) -> int:
        """How many errors it has, its own included."""
        return self.errors + bool(self.word) + sum(call.outcome == "failed" for call in self.calls)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in per cent of the width."""

    x: str
    width: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a turn (or a stretch of turns), one of its calls, or "38 more calls". `seconds` is None when unknown."""

    item: Turn | Call
    is_turn: bool
    bar: Bar | None
    seconds: float | None
    more_calls: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that stand together. With `fold` they are folded below that row, which sums them up."""

    rows: tuple[Row, ...]
    fold: Row | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of the axis at `x` per cent, with its unit unless it stands at the end, where there is no room for it."""

    x: str
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    blocks: tuple[Block, ...]
    ticks: tuple[Tick, ...]


def timeline(turns: Sequence[Turn], length: float) -> Timeline:
    """Arrange the turns of a run of `length` seconds. Of many the middle is folded, of very many a part summed up."""
    shown = [_with_fewer_calls(turn) for turn in turns]
    sizes = [_rows_of(turn) for turn in shown]
    head, tail = _visible(sizes)
    blocks = [Block(tuple(_rows(shown[:head], length)))]
    if head < tail:
        folded = _capped(shown[head:tail], MOST_ROWS - sum(sizes[:head]) - sum(sizes[tail:]))
        fold = _row_of_turn(_sum(shown[head:tail]), length)
        blocks.append(Block(tuple(_rows(folded, length)), fold))
        blocks.append(Block(tuple(_rows(shown[tail:], length))))
    return Timeline(tuple(blocks), ticks(length))


def calls_alone(calls: Sequence[Call], length: float) -> Timeline:
    """Arrange calls without their turns, such as those that failed."""
    return Timeline((Block(tuple(_row_of_call(call, length) for call in calls)),), ticks(length))


def ticks(length: float) -> tuple[Tick, ...]:
    """Return three to seven round times from 0 to `length` seconds; none for a run without length."""
    if not 0.001 <= length < 1e12:
        return ()
    step = next(step for step in _steps() if length / step < MOST_TICKS)
    marks = []
    for number in range(int(length / step) + 1):
        at = number * step
        label = _label(at, step)
        marks.append(Tick(_percent(at, length), label.split()[0] if at > 0.9 * length else label))
    return tuple(marks)


def _steps() -> Iterator[float]:
    for power in range(-4, 2):
        yield from (digit * 10.0**power for digit in (1, 2, 5) if digit * 10.0**power < 30)
    yield from _LONGER
    for power in count():
        yield from (digit * 10**power * _DAY for digit in (1, 2, 5))


def _label(at: float, step: float) -> str:
    if not at:
        return "0 s"
    for size, unit in ((_DAY, "d"), (3600, "h"), (60, "min")):
        if step >= size:
            return f"{at / size:g} {unit}"
    return f"{at:.6g} s"


def bar(start: float, end: float, length: float) -> Bar | None:
    """Return the bar from `start` to `end` seconds, wide enough to be seen; None for a run without length."""
    if length <= 0:
        return None
    left = min(max(start / length * 100, 0.0), 100 - LEAST_WIDTH)
    right = min(max(end / length * 100, left + LEAST_WIDTH), 100.0)
    return Bar(f"{left:.2f}%", f"{right - left:.2f}%")


def _percent(part: float, whole: float) -> str:
    return f"{part / whole * 100:.2f}%"


def _with_fewer_calls(turn: Turn) -> Turn:
    rest = turn.calls[MOST_CALLS:]
    if not rest:
        return turn
    failed = sum(call.outcome == "failed" for call in rest)
    more = turn.more_calls + len(rest)
    return replace(turn, calls=turn.calls[:MOST_CALLS], more_calls=more, errors=turn.errors + failed)


def _rows_of(turn: Turn) -> int:
    return 1 + len(turn.calls) + bool(turn.more_calls and not turn.last)


def _visible(sizes: Sequence[int]) -> tuple[int, int]:
    """Return where the folded turns begin and end; both the number of turns when nothing is folded."""
    if sum(sizes) <= UNFOLDED:
        return len(sizes), len(sizes)
    head = _fitting(sizes, HEAD_ROWS)
    tail = len(sizes) - _fitting(sizes[::-1], TAIL_ROWS)
    return (head, tail) if tail - head > 1 else (len(sizes), len(sizes))


def _fitting(sizes: Sequence[int], most: int) -> int:
    """Return how many of the first turns fit into `most` rows, at least one."""
    used = 0
    for number, size in enumerate(sizes):
        used += size
        if number and used > most:
            return number
    return len(sizes)


def _capped(turns: Sequence[Turn], most: int) -> list[Turn]:
    """Return `turns`, those that do not fit into `most` rows as one stretch."""
    fitting = _fitting([*map(_rows_of, turns)], max(most - 1, 1))
    rest = turns[fitting:]
    return [*turns[:fitting], *([_sum(rest)] if rest else [])]


def _sum(turns: Sequence[Turn]) -> Turn:
    """Return several turns as one stretch."""
    first, final = turns[0], turns[-1]
    tokens = [turn.tokens for turn in turns if turn.tokens is not None]
    costs = [turn.cost_usd for turn in turns if turn.cost_usd is not None]
    return Turn(
        number=first.number,
        last=max(final.last, final.number),
        line=first.line,
        label="",
        start=first.start,
        end=max(turn.end for turn in turns),
        tokens=sum(tokens) if tokens else None,
        cost_usd=sum(costs) if costs else None,
        more_calls=sum(len(turn.calls) + turn.more_calls for turn in turns),
        errors=sum(turn.failed for turn in turns),
    )


def _rows(turns: Sequence[Turn], length: float) -> Iterator[Row]:
    for turn in turns:
        yield _row_of_turn(turn, length)
        yield from (_row_of_call(call, length) for call in turn.calls)
        if turn.more_calls and not turn.last:
            yield Row(turn, False, None, None, turn.more_calls)


def _row_of_turn(turn: Turn, length: float) -> Row:
    return Row(turn, True, bar(turn.start, turn.end, length), max(turn.end - turn.start, 0.0))


def _row_of_call(call: Call, length: float) -> Row:
    if call.end is None:
        return Row(call, False, bar(call.start, call.start, length), None)
    return Row(call, False, bar(call.start, call.end, length), max(call.end - call.start, 0.0))
