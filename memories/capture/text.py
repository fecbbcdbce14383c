"""Normalise text and service names before they are compared or stored. Pure."""

from __future__ import annotations

import re

from memories.taxonomy import GENERAL

# Invisible characters: they hide words from a reader or change the reading direction. Visible Arabic and Kaithi
# format characters are not among them.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Line breaks of every kind, tabs and control characters become one space with the spaces around them.
SPACE = re.compile("[\\s\x00-\x1f\x7f-\x9f]+")
SURROGATE = re.compile("[\ud800-\udfff]")  # a lone surrogate: no database can store it


def fold(text: str) -> str:
    """`text` as one line: breaks and control characters become single spaces, invisible characters are removed.

    Lone surrogates (from broken JSON escapes) become U+FFFD, so the result can be encoded. Idempotent.
    """
    if text.isascii():
        if text.isprintable():  # most texts; ten times faster than the pattern
            return " ".join(text.split())
        return SPACE.sub(" ", text).strip()
    return SPACE.sub(" ", INVISIBLE.sub("", SURROGATE.sub("\ufffd", text))).strip()


def normalise_service(service: str | None) -> str | None:
    """A service name in lower case; None for no service, an empty name and `general`."""
    name = fold(service or "").lower()
    return None if name in ("", GENERAL) else name
