"""Format times in the active zone (`django.utils.timezone`), which is the person's on a page and UTC everywhere else.

`claudeops.lib.humanize` formats in UTC: for the API, commands, logs and sentences that are stored.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone

from claudeops.lib import humanize
from claudeops.lib.periods import Range


def zone_name(at: datetime) -> str:
    """Return the short name of the active zone at an aware time: "CET"; "UTC+03" where the zone has none; "UTC"."""
    name = timezone.localtime(at).tzname() or ""
    return f"UTC{name}" if name[:1] in "+-" else name


def exact(at: datetime) -> str:
    """Format an aware time: "2026-11-22 00:08:00 CET". The name tells apart the hour that a clock repeats."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S} {zone_name(at)}"


def on_hover(at: datetime) -> str:
    """Format an aware time in the active zone and in UTC: "2026-11-22 00:08:00 CET, 2026-11-21 23:08:00 UTC"."""
    local, utc = exact(at), humanize.exact(at)
    return utc if local == utc else f"{local}, {utc}"


def clock(at: datetime) -> str:
    """Format the time of day of an aware time: "00:08:00"."""
    return f"{timezone.localtime(at):%H:%M:%S}"


def iso(at: datetime) -> str:
    """Format an aware time for the attribute `datetime` of <time>: ISO 8601 in UTC, whole seconds."""
    return at.astimezone(UTC).isoformat(timespec="seconds")


def day(at: datetime, now: datetime) -> str:
    """Format the day of an aware time: "26 Nov", with the year when it is not that of `now`: "26 Nov 2027"."""
    local = timezone.localtime(at)
    year = "" if local.year == timezone.localtime(now).year else f" {local.year}"
    return f"{local.day} {local:%b}{year}"


def weekday(at: datetime, now: datetime) -> str:
    """Format the day of an aware time with its weekday: "Thu 26 Nov", "Fri 26 Nov 2027"."""
    return f"{timezone.localtime(at):%a} {day(at, now)}"


def label_of_part(one: Range, since: datetime) -> str:
    """Name a part of a range on an axis: "09:00", "Mon 23" or "23 Nov"."""
    begin = timezone.localtime(since)
    if one.hours == 1:
        return f"{begin:%H:%M}"
    return f"{begin.day} {begin:%b}" if one.hours == 24 else f"{begin:%a} {begin.day}"


def words_of_part(one: Range, since: datetime, until: datetime) -> str:
    """Name a part of a range in a sentence: "Mon 23 Nov, 09:00 to 10:00", or "Mon 23 Nov" for a day."""
    begin, end = timezone.localtime(since), timezone.localtime(until)
    day = f"{begin:%a} {begin.day} {begin:%b}"
    return day if one.hours == 24 else f"{day}, {begin:%H:%M} to {end:%H:%M}"
