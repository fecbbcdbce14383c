"""The links every page has at its top, and which of them is the page's own."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag(takes_context=True)
def nav_link(context: Context, name: str, label: str) -> SafeString:
    """A link to the address called `name`; marked as current on that page and on those below it."""
    url = reverse(name)
    request: Any = context.get("request")
    path = request.path if request else ""
    below = "admin:index" not in name and url != "/" and path.startswith(url)
    current = SafeString(' aria-current="page"') if path == url or below else ""
    return format_html('<a href="{}"{}>{}</a>', url, current, label)
