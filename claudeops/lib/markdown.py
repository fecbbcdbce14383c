"""Render untrusted Markdown as safe HTML.

Raw HTML is shown as text, images are removed (they would send requests), and the result passes an allow-list.
"""

from __future__ import annotations

from collections.abc import Sequence

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

LONGEST = 200_000
"""Most characters that are rendered; the page says that the rest is cut."""

# Under the page's own h1 and its sections' h2.
FIRST_HEADING = 3

TAGS = frozenset(
    [
        "p",
        "br",
        "hr",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "pre",
        "code",
        "em",
        "strong",
        "s",
        "a",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    ],
)
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "code": {"class"}}
SCHEMES = {"http", "https", "mailto"}

INLINE = frozenset(["code", "em", "strong", "s", "a", "br"])

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def _lower_headings(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + FIRST_HEADING - 1)}"


def render(text: str) -> SafeString:
    """Render CommonMark with tables and strikethrough. Never raises."""
    cut = len(text) > LONGEST
    tokens = _PARSER.parse(text[:LONGEST])
    _lower_headings(tokens)
    html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    clean = nh3.clean(
        html, tags=set(TAGS), attributes=ATTRIBUTES, url_schemes=SCHEMES, link_rel="noopener noreferrer nofollow"
    )
    if cut:
        clean += f"<p>Cut after {LONGEST:,} characters of {len(text):,}.</p>"
    return mark_safe(clean)  # noqa: S308  (nh3 has cleaned it)


def render_line(text: str) -> SafeString:
    """Render the inline Markdown of one line; nothing in it opens a block. Never raises."""
    clean = nh3.clean(
        _PARSER.renderInline(text[:LONGEST]),
        tags=set(INLINE),
        attributes={"a": {"href", "title"}},
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)  # noqa: S308  (nh3 has cleaned it)
