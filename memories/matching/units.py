"""Number words and units as data, with their factors to base units: seconds and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0

_TIME: dict[float, str] = {
    1e-6: "us µs microsecond microseconds",
    1e-3: "ms msec msecs millisecond milliseconds",
    1.0: "s sec secs second seconds",
    MINUTE: "m min mins minute minutes",
    HOUR: "h hr hrs hour hours",
    DAY: "d day days",
    7 * DAY: "w wk week weeks",
    30 * DAY: "mo month months",
    90 * DAY: "quarter quarters",
    365 * DAY: "y yr year years",
}
_SIZE = ("k kb kib kilobyte kilobytes", "m mb mib megabyte megabytes", "g gb gib gigabyte gigabytes gig gigs",
         "t tb tib terabyte terabytes")  # fmt: skip
_OTHER = {
    "percent": (1.0, "percent pct"),
    "clock": (1.0, "clock"),
    "hertz": (1.0, "hz"),
    "degree": (1.0, "°c °f °"),
    "watt": (1.0, "watt watts"),
    "pixel": (1.0, "px"),
}


def _units() -> dict[str, tuple[tuple[str, float], ...]]:
    """Return unit → readings (dimension, factor): "m" is a minute or a megabyte, "GB" 1000³ or 1024³ bytes."""
    units: dict[str, list[tuple[str, float]]] = {}

    def add(words: str, dimension: str, factor: float) -> None:
        for word in words.split():
            units.setdefault(word, []).append((dimension, factor))

    for seconds, words in _TIME.items():
        add(words, "time", seconds)
    add("mo month months", "months", 1.0)
    add("y yr year years", "months", 12.0)
    for power, words in enumerate(_SIZE, start=1):
        add(words, "size", 1024.0**power)
        add(words, "size", 1000.0**power)
    add("b byte bytes", "size", 1.0)
    add("kbit kbps", "bandwidth", 1e3)
    add("mbit mbps mbits", "bandwidth", 1e6)
    add("gbit gbps gbits", "bandwidth", 1e9)
    add("rps qps", "rate", 1.0)
    add("khz", "hertz", 1e3)
    add("mhz", "hertz", 1e6)
    add("ghz", "hertz", 1e9)
    for dimension, (factor, words) in _OTHER.items():
        add(words, dimension, factor)
    return {unit: tuple(readings) for unit, readings in units.items()}


UNITS: Mapping[str, tuple[tuple[str, float], ...]] = MappingProxyType(_units())

TIME_WORDS: Mapping[str, float] = MappingProxyType(
    {word: seconds for seconds, words in _TIME.items() for word in words.split() if len(word) > 2} | {"night": DAY}
)
"""Units that can follow "a", "every", "per"."""

PERIODS: Mapping[str, float] = MappingProxyType(
    {
        "hourly": HOUR, "daily": DAY, "nightly": DAY, "weekly": 7 * DAY, "fortnightly": 14 * DAY,
        "monthly": 30 * DAY, "quarterly": 90 * DAY, "yearly": 365 * DAY, "annually": 365 * DAY,
    }
)  # fmt: skip

TIMES: Mapping[str, float] = MappingProxyType({"once": 1.0, "twice": 2.0, "thrice": 3.0})


def _number_words() -> dict[str, float]:
    ones = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen"""
    tens = "twenty thirty forty fifty sixty seventy eighty ninety"
    return (
        {word: float(value) for value, word in enumerate(ones.split())}
        | {word: 10.0 * value for value, word in enumerate(tens.split(), start=2)}
        | {"single": 1.0, "dozen": 12.0, "hundred": 100.0, "thousand": 1000.0}
    )


NUMBER_WORDS: Mapping[str, float] = MappingProxyType(_number_words())

BOUNDS: Mapping[str, str] = MappingProxyType(
    {"at_least": "low", "over": "low", "above": "low"}
    | {"at_most": "high", "under": "high", "below": "high", "within": "high"}
)
"""Which end of an amount a word before it bounds."""

STARTS_AMOUNT = frozenset((*NUMBER_WORDS, *PERIODS, *TIMES, *BOUNDS, "every", "each", "per", "a", "an", "one", "half"))
