"""Read the window of time in which a memory is told, such as "first monday", and compute when it is open. Pure."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import NoReturn
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from memories.capture.text import fold
from memories.errors import InvalidMemory

LONGEST = 200
"""Characters of a window's text."""
FORMS = (
    "2026-12-01, 2026-12-01..2026-12-05, 12-24..12-26 (each year), mon,wed, mon-fri, first monday, last friday, day 1, "
    "day -1 (the last of a month), 08:00-12:00 (alone or after a day), cron 0 3 * * 1 for 6h; "
    "UTC, or a zone at the end, such as Europe/Vienna"
)

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NAMES = {
    name: number
    for number, full in enumerate(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"))
    for name in (full, WEEKDAYS[number])
}
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}

DATES = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.\.(\d{4}-\d\d-\d\d))?")
YEARLY = re.compile(r"(\d\d)-(\d\d)(?:\.\.(\d\d)-(\d\d))?")
NTH = re.compile(rf"({'|'.join(ORDINALS)}) ([a-z]+)")
OF_MONTH = re.compile(r"day (-?\d{1,2}(?:,-?\d{1,2})*)")
HOURS = re.compile(r"(?:(.*) )?(\d{1,2}):(\d\d)-(\d{1,2}):(\d\d)")
CRON = re.compile(r"cron (\S+ \S+ \S+ \S+ \S+) for (\d{1,4})([mhd])")
ZONE = re.compile(r"utc|[a-z][a-z0-9_+-]*(?:/[a-z0-9_+-]+)+", re.IGNORECASE)

LONGEST_OPENING = timedelta(days=366)
DAYS_AHEAD = 8 * 366 + 2
"""Days in which each day of the calendar comes: 29 February may be eight years away."""
UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
A_DAY = timedelta(days=1)

Opening = tuple[datetime, datetime]
"""Its start and its end in UTC; the end is outside."""


@dataclass(frozen=True, slots=True)
class Days:
    """Days of the calendar in a zone, for which `is_on` is true; whole, or between two times of day.

    `start` and `length` are from midnight by the clock of the zone. No day after `last` (None: no end) is one.
    """

    text: str
    is_on: Callable[[date], bool]
    zone: ZoneInfo
    start: timedelta
    length: timedelta
    last: date | None = None

    def opening(self, at: datetime) -> Opening | None:
        """Return the opening that `at` is in, or else the next one; None when none comes any more."""
        today = at.astimezone(self.zone).date()
        for ahead in range(-1, DAYS_AHEAD):
            day = today + timedelta(days=ahead)
            if self.last is not None and day > self.last:
                return None
            if self.is_on(day) and (span := self._of(day))[1] > at:
                return span
        return None

    def _of(self, day: date) -> Opening:
        """Return the opening of a day; whole days that follow each other are one."""
        first = last = day
        if self.length == A_DAY:
            while self.is_on(first - A_DAY) and day - first < LONGEST_OPENING:
                first -= A_DAY
            while self.is_on(last + A_DAY) and last - day < LONGEST_OPENING:
                last += A_DAY
        start, end = self._utc(first, self.start), self._utc(last, self.start + self.length)
        # Where clocks are set forward, both times may be the same instant, or in the wrong order.
        return start, end if end > start else start + self.length

    def _utc(self, day: date, clock: timedelta) -> datetime:
        return (datetime.combine(day, time()) + clock).replace(tzinfo=self.zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """From each time of a cron expression in a zone on, for `length`."""

    text: str
    expression: str
    zone: ZoneInfo
    length: timedelta

    def opening(self, at: datetime) -> Opening | None:
        """Return as `Days.opening`. Openings that overlap are not joined."""
        start = next(CronSim(self.expression, (at - self.length).astimezone(self.zone)), None)
        return None if start is None else (start.astimezone(UTC), start.astimezone(UTC) + self.length)


Window = Days | Cron

MOST_KNOWN = 1024
_known: dict[str, tuple[datetime, Opening]] = {}
"""The last opening by a window's text, and from when on it is that."""


def is_open(window: Window, at: datetime) -> bool:
    """Whether `at` (aware) is in the window."""
    opening = next_opening(window, at)
    return opening is not None and opening[0] <= at


def next_opening(window: Window, at: datetime) -> Opening | None:
    """Return the start and the end, in UTC, of the opening that `at` (aware) is in, or else of the next one.

    None when it opens no more. Until an opening ends, each later time has the same one.
    """
    entry = _known.get(window.text)
    if entry is not None and entry[0] <= at < entry[1][1]:
        return entry[1]
    opening = window.opening(at.astimezone(UTC))
    if opening is not None and not isinstance(window, Cron):  # openings of a cron line may overlap
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[window.text] = at, opening
    return opening


@lru_cache(maxsize=1024)
def parse(text: str) -> Window:
    """Read the text of a window. Raises InvalidMemory with the allowed forms."""
    surface = fold(text)
    if len(surface) > LONGEST:
        raise InvalidMemory(f"surface has {len(surface):,} characters; at most {LONGEST} are stored.", field="surface")
    words, zone = _zone(surface.split(" "), surface)
    rest = re.sub(r" ?(,|\.\.|(?<=:\d\d)(?: - |-)(?=\d)) ?", lambda sign: sign[1].strip(), " ".join(words).lower())
    shown = f"{rest} {zone.key}".strip() if zone.key != "UTC" else rest
    if match := CRON.fullmatch(rest):
        return _cron(match, shown, zone)
    start, length = timedelta(), A_DAY
    if match := HOURS.fullmatch(rest):
        rest = match[1] or ""
        start, length = _hours(match, surface)
    elif not rest:
        _refuse(surface)
    is_on, last = _days(rest, surface)
    window = Days(shown, is_on, zone, start, length, last)
    if length == A_DAY and last is None and all(is_on(date(2027, 1, 1) + timedelta(days=n)) for n in range(366)):
        raise InvalidMemory(f"surface is {surface!r}, which is always.", "Leave it empty.", field="surface")
    return window


def _refuse(surface: str, why: str = "") -> NoReturn:
    raise InvalidMemory(f"surface is {surface!r}{f', but {why}' if why else ''}. Allowed are {FORMS}.", field="surface")


def _zone(words: list[str], surface: str) -> tuple[list[str], ZoneInfo]:
    if not ZONE.fullmatch(words[-1]):
        return words, ZoneInfo("UTC")
    try:
        return words[:-1], ZoneInfo("UTC" if words[-1].lower() == "utc" else words[-1])
    except (OSError, ValueError, KeyError):  # KeyError: ZoneInfoNotFoundError
        _refuse(surface, f"there is no time zone {words[-1]}")


def _cron(match: re.Match[str], shown: str, zone: ZoneInfo) -> Cron:
    length = int(match[2]) * UNITS[match[3]]
    if not timedelta() < length <= LONGEST_OPENING:
        _refuse(match[0], f"a length is from 1m to {LONGEST_OPENING.days}d")
    try:
        next(CronSim(match[1], datetime(2000, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration):
        _refuse(match[0], f"{match[1]} is no cron expression of five fields that fires")
    return Cron(shown, match[1], zone, length)


def _hours(match: re.Match[str], surface: str) -> tuple[timedelta, timedelta]:
    """Return the start of times of day and their length; an end before the start is one of the next day."""
    numbers = [int(number) for number in match.groups()[1:]]
    start, end = (timedelta(hours=numbers[at], minutes=numbers[at + 1]) for at in (0, 2))
    if numbers[1] > 59 or numbers[3] > 59 or start >= A_DAY or end > A_DAY or start == end:
        _refuse(surface, "its times of day are not two different ones")
    return start, (end - start) if end > start else end - start + A_DAY


def _days(text: str, surface: str) -> tuple[Callable[[date], bool], date | None]:
    """Return which days a text names, and the last of them where there is one. "" is each day."""
    if not text:
        return (lambda day: True), None
    if match := DATES.fullmatch(text):
        return _dates(match, surface)
    if match := YEARLY.fullmatch(text):
        return _yearly(match, surface), None
    if match := OF_MONTH.fullmatch(text):
        return _of_month(match, surface), None
    if (match := NTH.fullmatch(text)) and match[2] in NAMES:
        return _nth(ORDINALS[match[1]], NAMES[match[2]]), None
    weekdays = _weekdays(text, surface)
    return (lambda day: day.weekday() in weekdays), None


def _weekdays(text: str, surface: str) -> set[int]:
    """Read "mon,wed", "mon-fri" or both."""
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in NAMES or (last or first) not in NAMES:
            _refuse(surface)
        start = NAMES[first]
        days |= {(start + n) % 7 for n in range((NAMES[last or first] - start) % 7 + 1)}
    return days


def _dates(match: re.Match[str], surface: str) -> tuple[Callable[[date], bool], date]:
    try:
        first = date.fromisoformat(match[1])
        last = date.fromisoformat(match[2] or match[1])
    except ValueError:
        _refuse(surface, "there is no such date")
    if not first <= last < first + LONGEST_OPENING or not 2000 <= first.year < 2200:
        _refuse(surface, f"a range is from 1 to {LONGEST_OPENING.days} days, its first day before its last")
    return (lambda day: first <= day <= last), last


def _yearly(match: re.Match[str], surface: str) -> Callable[[date], bool]:
    first = int(match[1]), int(match[2])
    last = (int(match[3]), int(match[4])) if match[3] else first
    try:
        for month, day in (first, last):
            date(2024, month, day)  # a leap year
    except ValueError:
        _refuse(surface, "there is no such day of a year")
    if first <= last:
        return lambda day: first <= (day.month, day.day) <= last
    return lambda day: (day.month, day.day) >= first or (day.month, day.day) <= last


def _of_month(match: re.Match[str], surface: str) -> Callable[[date], bool]:
    numbers = {int(number) for number in match[1].split(",")}
    if not all(1 <= abs(number) <= 31 for number in numbers):
        _refuse(surface, "a day of a month is from 1 to 31, or from -1 (the last) to -31")
    return lambda day: not numbers.isdisjoint((day.day, day.day - monthrange(day.year, day.month)[1] - 1))


def _nth(nth: int, weekday: int) -> Callable[[date], bool]:
    def is_on(day: date) -> bool:
        if day.weekday() != weekday:
            return False
        return day.day + 7 > monthrange(day.year, day.month)[1] if nth == -1 else (day.day - 1) // 7 + 1 == nth

    return is_on
