"""Template filters and tags: ages, durations, amounts, confidence, Markdown.

The HTML has no inline styles or scripts (the content policy forbids both).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from claudeops.lib import humanize
from claudeops.lib import markdown as markdown_of
from memories.queries import inbox

register = template.Library()

NONE = SafeString('<span class="none" aria-label="none">–</span>')
SAID = 256
"""Bars and badges cached by a process: a list draws the same few in every row."""
LOW, HIGH = 0.3, 0.7  # where the bar changes its colour


@register.simple_tag
def open_questions() -> str:
    """The number of open disagreements, "99+" at most; empty for none. One indexed query."""
    count = inbox.count_open()
    return "99+" if count >= inbox.CAP else str(count or "")


@register.filter
def ago(at: datetime | None) -> SafeString:
    """An aware time as its age, with the exact time in UTC on hover; a dash for none."""
    if at is None:
        return NONE
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        at.astimezone(UTC).isoformat(timespec="seconds"),
        humanize.exact(at),
        humanize.ago(at, timezone.now()),
    )


@register.filter
def shortened(text: str, most: int) -> str:
    """At most `most` characters of a text. Faster than `truncatechars` for short texts."""
    return text if len(text) <= most else Truncator(text).chars(most)


@register.filter
def due(at: datetime | None) -> SafeString:
    """A coming time as an age; a time in the past is "due"."""
    if at is None or at > timezone.now():
        return ago(at)
    return format_html("due {}", ago(at))


@register.filter
def exact(at: datetime | None) -> str | SafeString:
    """An aware time in full, in UTC."""
    return NONE if at is None else humanize.exact(at)


@register.filter
def since(at: datetime | None) -> str | SafeString:
    """The time since an aware time, as a duration: "12 min 5 s"."""
    return NONE if at is None else humanize.span(max(0.0, (timezone.now() - at).total_seconds()))


@register.filter
def milliseconds(value: int | None) -> str | SafeString:
    """Milliseconds as a duration; a dash for none or zero."""
    return humanize.span(value / 1000) if value else NONE


@register.filter
def seconds(value: float | None) -> str | SafeString:
    """Seconds as a duration; a dash for none."""
    return NONE if value is None else humanize.span(value)


@register.filter
def dollars(value: Decimal | float | None) -> str | SafeString:
    return NONE if value is None else humanize.dollars(value)


@register.filter
def thousands(value: int) -> str:
    """A whole number with separators: 12,345."""
    return f"{value:,}"


@register.filter
def words(name: str) -> str:
    """A name from the code as words: cache_read_input_tokens is "cache read input tokens"."""
    return str(name).replace("_", " ")


@register.filter
def markdown(text: str) -> SafeString:
    """An agent's Markdown as safe HTML (see `claudeops.lib.markdown`)."""
    return markdown_of.render(text)


@register.filter
def pretty(value: Any) -> str:
    """A JSON value, indented, as text."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=str)


@register.filter
def value_text(value: Any) -> str | SafeString:
    """One value of a change for people: a time in UTC, yes and no, a list with commas, a dash for none."""
    if value is None or value in ("", []):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        shown = f"{value:.3f}".rstrip("0")
        return shown + "0" if shown.endswith(".") else shown
    if isinstance(value, list):
        return ", ".join(str(part) for part in value)
    if isinstance(value, str) and len(value) >= 19 and value[4:5] == "-" and value[10:11] == "T":
        try:
            return humanize.exact(datetime.fromisoformat(value))
        except ValueError:
            return value
    return str(value)


@register.filter
def difference(value: float) -> str:
    """A difference of confidences without sign: 0.1, 0.25."""
    return f"{abs(value):.2f}".removesuffix("0")


@register.filter
def percent_of(part: Decimal | float, whole: Decimal | float) -> int:
    """`part` of `whole` in percent, 0 to 100, rounded; 0 when `whole` is zero."""
    if not whole:
        return 0
    return max(0, min(100, round(100 * float(part) / float(whole))))


@register.simple_tag
def bar(percent: int, level: str = "mid") -> SafeString:
    """A bar filled to `percent` (0..100). Decoration: the number must stand beside it. `level`: low, mid or high."""
    return format_html(
        '<svg class="bar bar-{}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="bar-rest" width="100" height="8"/><rect class="bar-fill" width="{}" height="8"/></svg>',
        level,
        percent,
    )


@register.simple_tag
def meter(part: float, whole: float) -> SafeString:
    """A bar that shows `part` of `whole`."""
    return bar(percent_of(part, whole))


@register.simple_tag
@lru_cache(maxsize=SAID)
def confidence(value: float) -> SafeString:
    """A confidence (0..1) as a bar with its number."""
    level = "low" if value < LOW else "high" if value >= HIGH else "mid"
    return format_html(
        '<span class="confidence">{}<span class="number">{}</span></span>',
        bar(max(0, min(100, round(100 * value))), level),
        f"{value:.2f}",
    )


@register.simple_tag
@lru_cache(maxsize=SAID)
def badge(kind: str, label: str) -> SafeString:
    """A small label; `kind` chooses its colour (a status or a level) and is a class name."""
    return format_html('<span class="badge badge-{}">{}</span>', kind, label)


def session_link(pk: int | None) -> SafeString:
    """A link to a session's page on the dashboard, for a column of an admin list; a dash for none."""
    if pk is None:
        return NONE
    return format_html('<a href="{}">session {}</a>', reverse("session", args=[pk]), pk)
