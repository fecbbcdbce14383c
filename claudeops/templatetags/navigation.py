"""Sidebar links with the current one marked, the state of the workers, icons, marked words, an undo's address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django import template
from django.template import Context
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from claudeops.features.overview import health
from claudeops.features.overview import silence as gone_quiet

register = template.Library()

UNDO = "undo:"


@register.simple_tag(takes_context=True)
def nav_link(
    context: Context,
    name: str,
    label: str,
    instead: str = "",
    but: str = "",
    also: str = "",
    under: str = "",
    count: str = "",
) -> SafeString:
    """Render a link to the URL named `name` (or else `instead`); nothing when there is neither.

    It is marked as current on that page and on those below it, except below the URLs named `but`, on the pages named
    `also` (both separated by spaces), and on those whose path begins with `under`. `count` is shown beside the label.
    """
    url = _address(name) or _address(instead)
    if not url:
        return SafeString("")
    request: Any = context.get("request")
    path = request.path if request else ""
    elsewhere = [address for address in map(_address, but.split()) if address]
    if any(path == one or path.startswith(f"{one}/") for one in elsewhere):
        path = ""
    below = "admin:index" not in name and url != "/" and path.startswith(url if url.endswith("/") else url + "/")
    here = path in (url, *map(_address, also.split())) or below or (under and path.startswith(under))
    current = SafeString(' aria-current="page"') if path and here else ""
    waiting = format_html(' <span class="side-count">{}</span>', count) if count else ""
    return format_html('<a href="{}"{}>{}{}</a>', url, current, label, waiting)


def _address(name: str) -> str:
    try:
        return reverse(name) if name else ""
    except NoReverseMatch:
        return ""


@register.simple_tag
def silence_alarms() -> tuple[gone_quiet.Alarm, ...]:
    """Return what has gone quiet, for `overview/_silence.html`."""
    return gone_quiet.alarms()


@register.simple_tag(takes_context=True)
def workers_are_well(context: Context) -> bool:
    """Return whether workers and queues need no attention, as of at most some seconds ago, or as the page shows it."""
    shown = context.get("health")
    return shown.ok if isinstance(shown, health.Health) else health.is_well()


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """Render the icon `name` of templates/_icons.html; with a label it is an image, without one it is decoration."""
    attributes = format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    return format_html('<svg class="i i-{}" {}><use href="#i-{}"/></svg>', name, attributes, name)


@register.filter
def undo_address(tags: str | None) -> str:
    """Return the path in `extra_tags` of "undo:/an/address"; empty for a message that cannot be undone."""
    return tags.removeprefix(UNDO) if tags and tags.startswith(UNDO + "/") else ""


@register.filter
def marked(text: str, words: Sequence[str]) -> SafeString | str:
    """Mark each of the words where it stands in the text, whatever its case."""
    if not words:
        return text
    parts = re.split(f"({'|'.join(map(re.escape, words))})", text, flags=re.IGNORECASE)
    return format_html_join("", "{}", ((format_html("<b>{}</b>", p) if n % 2 else p,) for n, p in enumerate(parts)))


@register.filter
def typed(text: str) -> SafeString:
    """Format the text between backquotes as code."""
    parts = text.split("`")
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", p) if n % 2 else p,) for n, p in enumerate(parts))
    )
