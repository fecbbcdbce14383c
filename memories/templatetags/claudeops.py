"""Template filters and tags: ages, durations, amounts, confidence, Markdown. No inline styles or scripts (CSP)."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from claudeops.lib import humanize, local_time
from claudeops.lib import markdown as markdown_of
from memories import inbox
from memories.history.forecast import forecast
from memories.models import Memory, Trust
from memories.queries.list import status_of, why_of

register = template.Library()

NONE = SafeString('<span class="none" aria-label="none">–</span>')
SAID = 256
"""Bars and badges cached by a process: a list repeats the same few."""
LOW, HIGH = 0.3, 0.7  # where the bar changes its colour


@register.simple_tag
def inbox_count() -> str:
    """Return the number of items in the inbox, as of at most some seconds ago; empty for none."""
    return inbox.shown(inbox.count())


@register.filter
def ago(at: datetime | None) -> SafeString:
    """Format an aware time as its age, with the exact time, local and in UTC, on hover; a dash for none."""
    if at is None:
        return NONE
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        local_time.iso(at),
        local_time.on_hover(at),
        humanize.ago(at, timezone.now()),
    )


@register.filter
def shortened(text: str, most: int) -> str:
    """Cut a text to `most` characters. Faster than `truncatechars` for short texts."""
    return text if len(text) <= most else Truncator(text).chars(most)


@register.filter
def fades(memory: Memory) -> SafeString:
    """Format when a memory becomes inactive or expires unless it is confirmed; a dash when it does not."""
    now = timezone.now()
    end = forecast(memory, now).inactive_at
    if end is None:
        return NONE
    days = (end - now).days
    level = "bad" if days < 3 else "warn" if days < 8 else ""
    return format_html('<span class="fades {}">{}</span>', level, due(end))


@register.filter
def why(memory: Memory) -> str:
    """Say why a memory is held, unconfirmed or inactive."""
    return why_of(memory)


STATUS_ICONS = {"active": "ok", "unconfirmed": "held", "held": "held", "rejected": "failed", "inactive": "inactive"}


@register.simple_tag
def status_icon(memory: Memory) -> SafeString:
    """A memory's status as an icon that is named by it and by its reason."""
    status, reason = status_of(memory), why_of(memory)
    label = f"{status}: {reason}" if reason else status
    if memory.persistent:
        label += "; persistent"
    return _status_icon(STATUS_ICONS[status], label)


@lru_cache(maxsize=SAID)
def _status_icon(name: str, label: str) -> SafeString:
    return format_html(
        '<svg class="i i-{}" role="img" aria-label="{}"><title>{}</title><use href="#i-{}"/></svg>',
        *(name, label, label, name),
    )


@register.simple_tag
@lru_cache(maxsize=SAID)
def trust_mark(value: str) -> SafeString:
    """How far a memory is trusted (a value of Trust; anything else is the least), as bars and in words."""
    levels = list(Trust)
    trust = Trust(value) if value in levels else levels[-1]
    most = len(levels)
    bars = format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="2.5" height="{}"/>',
        (
            (
                "trust-on" if place < most - levels.index(trust) else "trust-off",
                1 + 4 * place,
                10 - 3 * place,
                4 + 3 * place,
            )
            for place in range(most)
        ),
    )
    return format_html(
        '<span class="trust trust-{}"><svg viewBox="0 0 16 16" aria-hidden="true" focusable="false">{}</svg>{}</span>',
        *(trust.value, bars, trust.label),
    )


@register.filter
def due(at: datetime | None) -> SafeString:
    """Format a coming time as an age; a time in the past is "due"."""
    if at is None or at > timezone.now():
        return ago(at)
    return format_html("due {}", ago(at))


@register.filter
def exact(at: datetime | None) -> SafeString:
    """Format an aware time in the active zone, with UTC on hover; a dash for none."""
    if at is None:
        return NONE
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', local_time.iso(at), humanize.exact(at), local_time.exact(at)
    )


@register.filter
def day(at: datetime) -> SafeString:
    """Format the day of an aware time in the active zone: "26 Nov"; the exact time on hover."""
    shown = local_time.day(at, timezone.now())
    return format_html('<time datetime="{}" title="{}">{}</time>', local_time.iso(at), local_time.on_hover(at), shown)


@register.simple_tag
def now_exact() -> SafeString:
    return exact(timezone.now())


@register.filter
def since(at: datetime | None) -> str | SafeString:
    """Format the time since an aware time as a duration: "12 min 5 s"."""
    return NONE if at is None else humanize.span(max(0.0, (timezone.now() - at).total_seconds()))


@register.filter
def milliseconds(value: int | None) -> str | SafeString:
    """Format milliseconds as a duration; a dash for none or zero."""
    return humanize.span(value / 1000) if value else NONE


@register.filter
def seconds(value: float | None) -> str | SafeString:
    return NONE if value is None else humanize.span(value)


@register.filter
def dollars(value: Decimal | float | None) -> str | SafeString:
    return NONE if value is None else humanize.dollars(value)


@register.filter
def thousands(value: int) -> str:
    return f"{value:,}"


@register.filter
def words(name: str) -> str:
    return str(name).replace("_", " ")


@register.filter
def markdown(text: str) -> SafeString:
    return markdown_of.render(text)


@register.filter
def markdown_line(text: str) -> SafeString:
    return markdown_of.render_line(text)


@register.filter
def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=str)


@register.filter
def value_text(value: Any) -> str | SafeString:
    """Format one value of a change: a time in the active zone, yes and no, a list with commas, a dash for none."""
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
            return exact(datetime.fromisoformat(value))
        except ValueError:
            return value
    return str(value)


@register.filter
def difference(value: float) -> str:
    """Format a difference of confidences without sign: 0.1, 0.25."""
    return f"{abs(value):.2f}".removesuffix("0")


@register.filter
def percent_of(part: Decimal | float, whole: Decimal | float) -> int:
    """Return `part` of `whole` in percent, 0 to 100, rounded; 0 when `whole` is zero."""
    if not whole:
        return 0
    return max(0, min(100, round(100 * float(part) / float(whole))))


@register.simple_tag
def bar(percent: int, level: str = "mid") -> SafeString:
    """A bar filled to `percent` (0..100), hidden from screen readers. `level`: low, mid or high."""
    return format_html(
        '<svg class="bar bar-{}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">'
        '<rect class="bar-rest" width="100" height="8"/><rect class="bar-fill" width="{}" height="8"/></svg>',
        level,
        percent,
    )


@register.simple_tag
def meter(part: float, whole: float) -> SafeString:
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
    """A small label; `kind` (a status or a level) is its class name, which sets the colour."""
    return format_html('<span class="badge badge-{}">{}</span>', kind, label)


def session_link(pk: int | None) -> SafeString:
    """Link to a session's page on the dashboard, for a column of an admin list; a dash for none."""
    if pk is None:
        return NONE
    return format_html('<a href="{}">session {}</a>', reverse("session", args=[pk]), pk)


def memory_link(pk: int | None) -> SafeString:
    """Link to a memory's page on the dashboard, for a message."""
    return format_html('<a href="{}">Memory {}</a>', reverse("memory", args=[pk]), pk)
