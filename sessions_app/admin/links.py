"""Links between the sessions' admin pages."""

from __future__ import annotations

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memories.templatetags.claudeops import NONE


def session_url(pk: int) -> str:
    return reverse("admin:sessions_app_session_change", args=[pk])


def session_link(pk: int | None) -> SafeString:
    """A link to a session's page; a dash for none."""
    return NONE if pk is None else format_html('<a href="{}">session {}</a>', session_url(pk), pk)


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
