"""Parse amounts from tokens: 60s, a minute, 5 to 10 minutes, at least 2 GB, twice a day, 3 nodes, 1380."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .function_words import FUNCTION_WORDS
from .quantities import BARE, PERIOD, Quantity, Reading, bounded
from .tokens import A_COMMA, A_NUMBER, A_STOP, A_WORD, Token
from .units import BOUNDS, DAY, NUMBER_WORDS, PERIODS, TIME_WORDS, TIMES, UNITS

Tokens = Sequence[Token]
Noun = Callable[[str], str]
Found = tuple[tuple[Reading, ...], int] | None
"""The readings of an amount and the index of the token after it."""

_EVERY = frozenset(("every", "each", "per"))
_ONE = frozenset(("a", "an", "one"))
_AN_END = (A_COMMA, A_STOP)
COUNTED_BY_AN_ARTICLE = TIME_WORDS.keys() | {"couple"}
"""What must follow "a" or "an" for an amount to start there."""


def amount_at(tokens: Tokens, at: int, noun: Noun) -> tuple[Quantity, int] | None:
    """Return the amount at token `at` and the index after it. `noun` names a counted thing ('' for none)."""
    bound = _word(tokens, at) if _word(tokens, at) in BOUNDS else ""
    if bound:
        found = _measure(tokens, at + 1, noun)
        if found is None or _word(tokens, at + 1) in TIMES:
            found = _times(tokens, at + 1)
    else:
        found = _every(tokens, at) or _times(tokens, at) or _measure(tokens, at, noun)
    if found is None:
        return None
    readings, after = found
    dimension = readings[0].dimension
    quantity = Quantity(_written(tokens[at:after]), readings, anchor=dimension.partition("count ")[2])
    return (bounded(quantity, bound) if bound else quantity), after


def weekly() -> tuple[Reading, ...]:
    """The period that "every Sunday" states beside the day."""
    return _once_in(7 * DAY)


def _written(tokens: Tokens) -> str:
    if tokens[-1].text == "clock":
        return "{:02d}:{:02d}".format(*divmod(int(float(tokens[-2].text)), 60))
    return " ".join(token.text.replace("_", " ") for token in tokens)


def _word(tokens: Tokens, at: int) -> str:
    return tokens[at].text if 0 <= at < len(tokens) and tokens[at].sort is A_WORD else ""


def _once_in(seconds: float) -> tuple[Reading, ...]:
    return (Reading(PERIOD, seconds, seconds),)


def _every(tokens: Tokens, at: int) -> Found:
    """daily, every 5 minutes, every other day."""
    word = _word(tokens, at)
    if word in PERIODS:
        return _once_in(PERIODS[word]), at + 1
    rate = word in _ONE and _word(tokens, at + 1) in TIME_WORDS and _counts_before(tokens, at)
    if not (word in _EVERY or rate) or _word(tokens, at - 1) == "of":  # "the first of every month" is a day
        return None
    if _word(tokens, at + 1) == "other":
        number, after = 2.0, at + 2
    elif _word(tokens, at + 1) == "half":
        number, after = 0.5, at + 2 + (_word(tokens, at + 2) in _ONE)
    else:
        number, after = _number(tokens, at + 1) or (1.0, at + 1)
    unit = _word(tokens, after)
    if unit in TIME_WORDS:
        return _once_in(number * TIME_WORDS[unit]), after + 1
    if after > at + 1 and unit in UNITS and UNITS[unit][0][0] == "time":  # "every 5m", but not "every m"
        return _once_in(number * UNITS[unit][0][1]), after + 1
    return None


def _counts_before(tokens: Tokens, at: int) -> bool:
    """Whether a counted thing stands right before: "five certificates a week", but not "5 GB in a week"."""
    for number in (at - 2, at - 3):
        is_number = number >= 0 and (tokens[number].sort is A_NUMBER or _word(tokens, number) in NUMBER_WORDS)
        between = [_word(tokens, place) for place in range(number + 1, at)]
        if is_number and all(word and word not in FUNCTION_WORDS and word not in UNITS for word in between):
            return True
    return False


def _times(tokens: Tokens, at: int) -> Found:
    """once a week, twice daily, three times per hour; twice."""
    word = _word(tokens, at)
    if word in TIMES:
        number, after = TIMES[word], at + 1
    elif (counted := _number(tokens, at)) and _word(tokens, counted[1]) in ("time", "times"):
        number, after = counted[0], counted[1] + 1
    else:
        return None
    following = _word(tokens, after)
    if following in PERIODS and number:
        return _once_in(PERIODS[following] / number), after + 1
    if following in _ONE | _EVERY and _word(tokens, after + 1) in TIME_WORDS and number:
        return _once_in(TIME_WORDS[_word(tokens, after + 1)] / number), after + 2
    at_an_end = after >= len(tokens) or tokens[after].sort in _AN_END or following in ("if", "when", "after")
    if word == "once" and not at_an_end:
        return None  # "once it is up"
    return (Reading("count time", number, number),), after


def _measure(tokens: Tokens, at: int, noun: Noun) -> Found:
    """60s, 5 minutes, 5 to 10 minutes, a minute and a half, 3 nodes, 1380."""
    number = _number(tokens, at)
    if number is None:
        return None
    low, after = number
    high, after = _upper(tokens, at, low, after)
    unit = _word(tokens, after)
    if unit in UNITS:
        after += 1
        if [_word(tokens, after + ahead) for ahead in range(3)] == ["and", "a", "half"]:
            low, high, after = low + 0.5, high + 0.5, after + 3
        return tuple(Reading(dimension, low * factor, high * factor) for dimension, factor in UNITS[unit]), after
    counted = noun(unit) if unit else ""
    if not counted and tokens[at].text in ("one", "single"):
        return None  # "one of them"
    return (Reading(f"count {counted}" if counted else BARE, low, high),), after


def _upper(tokens: Tokens, at: int, low: float, after: int) -> tuple[float, int]:
    """The upper end of "5 to 10 minutes", "between 5 and 10 minutes"; the lower one when there is none."""
    joint = _word(tokens, after)
    upper = _number(tokens, after + 1) if joint in ("to", "and", "or") else None
    is_range = upper and upper[0] > low and (joint != "and" or _word(tokens, at - 1) == "between")
    if upper and is_range and _word(tokens, upper[1]) in UNITS:
        return upper
    return low, after


def _number(tokens: Tokens, at: int) -> tuple[float, int] | None:
    """A number in digits or words: 90, five, twenty-four, two hundred, a couple of, half an."""
    if at < len(tokens) and tokens[at].sort is A_NUMBER:
        value, after = float(tokens[at].text), at + 1
    elif (word := _word(tokens, at)) in NUMBER_WORDS:
        value, after = NUMBER_WORDS[word], at + 1
        ones = NUMBER_WORDS.get(_word(tokens, after), 0)
        if 20 <= value <= 90 and 0 < ones < 10:
            value, after = value + ones, after + 1
    else:
        return _article(tokens, at)
    scale = NUMBER_WORDS.get(_word(tokens, after), 0)
    return (value * scale, after + 1) if scale >= 100 else (value, after)


def _article(tokens: Tokens, at: int) -> tuple[float, int] | None:
    """Articles that count: a minute, half an hour, a couple of days."""
    one, two, three = (_word(tokens, at + ahead) for ahead in range(3))
    if one == "half" and two in _ONE and three in TIME_WORDS:
        return 0.5, at + 2
    if one in _ONE and (two, three) == ("couple", "of"):
        return 2.0, at + 3
    is_ordinal = two == "second" and at + 2 < len(tokens) and tokens[at + 2].sort not in _AN_END  # "a second restart"
    if one in _ONE and two in TIME_WORDS and not is_ordinal:
        return 1.0, at + 1
    return None
