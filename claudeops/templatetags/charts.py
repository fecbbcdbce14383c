"""Draw charts that many pages repeat unchanged."""

from __future__ import annotations

from functools import lru_cache

from django import template
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString

from claudeops.lib.charts.strip import Strip

register = template.Library()

KEPT = 256
"""Strips that a process keeps drawn: between two polls most agents have run nothing."""


@register.simple_tag
def draw_strip(strip: Strip) -> SafeString:
    """Draw a strip as `charts/_strip.html` does, with times in the active zone."""
    return _drawn(strip, timezone.get_current_timezone_name())


@lru_cache(maxsize=KEPT)
def _drawn(strip: Strip, zone: str) -> SafeString:
    return render_to_string("charts/_strip.html", {"strip": strip})
