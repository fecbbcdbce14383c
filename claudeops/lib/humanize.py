"""Format ages, durations, sizes and amounts of money for people. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

MINUTE, HOUR, DAY = 60, 3600, 86_400

# (least age in seconds, seconds of the unit, unit). A month is 30 days, a year 365.
UNITS = (
    (2 * 365 * DAY, 365 * DAY, "year"),
    (60 * DAY, 30 * DAY, "month"),
    (2 * DAY, DAY, "day"),
    (2 * HOUR, HOUR, "hour"),
    (MINUTE, MINUTE, "minute"),
    (0, 1, "second"),
)
JUST_NOW = 5


def ago(at: datetime, now: datetime) -> str:
    """Format `at` relative to `now` (both aware): "3 days ago", "in 5 minutes", "just now" within five seconds."""
    seconds = (now - at).total_seconds()
    size = abs(seconds)
    if size < JUST_NOW:
        return "just now"
    unit_seconds, unit = next((length, name) for start, length, name in UNITS if size >= start)
    count = int(size // unit_seconds)
    words = f"{count} {unit}" + ("" if count == 1 else "s")
    return f"{words} ago" if seconds > 0 else f"in {words}"


def exact(at: datetime) -> str:
    """Format an aware time in UTC: "2026-11-21 23:08:00 UTC"."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """Format a duration in at most two units: "0.4 s", "45 s", "12 min 5 s", "3 h 20 min", "2 d 4 h"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, name, smaller_size, smaller in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller_size
            return f"{whole // size} {name}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Format a number of things: "1 pair", "2,000 pairs"; `plural` where it has no s: "2 memories"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(count: float) -> str:
    """Format a number of bytes: "0 bytes", "1.5 KB", "3.2 GB" (1 KB is 1,024 bytes)."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TB"


def dollars(amount: Decimal | float) -> str:
    """Format US dollars with two decimals; below one dollar with up to four where they are not zero."""
    value = Decimal(str(amount))
    if abs(value) >= 1:
        return f"${value:,.2f}"
    units, decimals = f"{value:.4f}".split(".")
    return f"${units}.{decimals[:2]}{decimals[2:].rstrip('0')}"
