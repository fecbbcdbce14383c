"""Normalise text and service names before they are compared or stored. Pure."""

from __future__ import annotations

import re

from memories.taxonomy import GENERAL

# Characters that are invisible or change the reading direction; visible Arabic and Kaithi format characters are not
# among them.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Line breaks of every kind, tabs and control characters become one space with the spaces around them.
SPACE = re.compile("[\\s\x00-\x1f\x7f-\x9f]+")
WITHOUT_BLANKS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""A range of characters whose words stand without blanks: Thai, Lao, Burmese, Khmer, kana, Chinese; and Hangul."""
SURROGATE = re.compile("[\ud800-\udfff]")  # a lone surrogate: no database can store it

THINGS = frozenset(
    """
    bus class cluster disk drive group host lane line link node partition path phase plan pod pool psu rack region
    replica ring server shard site slot switch team tier type uplink ups vm volume zone
    """.split()  # noqa: SIM905
)
"""Things that a letter tells from their like: "team B"."""
# "a" and "I" are also an article and a pronoun, so these count only where neither can stand.
LONE_LETTER = re.compile(
    r" +(?:[b-hj-zA-HJ-Z]|[aiI](?=[.,;:!?)\]\"”]|\s*$|['’]s\b|\s(?:and|at|has|in|is|on|or)\b)|a(?=\swas\b))"
    r"(?!\w|[./-]\w|['’](?!s\b))"
)


def fold(text: str) -> str:
    """Fold `text` to one line without control and invisible characters; lone surrogates become U+FFFD. Idempotent."""
    if text.isascii():
        if text.isprintable():  # most texts; ten times faster than the pattern
            return " ".join(text.split())
        return SPACE.sub(" ", text).strip()
    return SPACE.sub(" ", INVISIBLE.sub("", SURROGATE.sub("\ufffd", text))).strip()


def join_lettered(text: str) -> str:
    """Write a thing and its letter as one name: "team B" → "team-B". Any other text stays as it is."""
    return LONE_LETTER.sub(_joined, text)


def _joined(match: re.Match[str]) -> str:
    text, at = match.string, match.start()
    before = text[text.rfind(" ", 0, at) + 1 : at].lstrip("([\"'“").lower()
    return f"-{match[0].lstrip()}" if before in THINGS else match[0]


def normalise_service(service: str | None) -> str | None:
    """A service name in lower case; None for no service, an empty name and `general`."""
    name = fold(service or "").lower()
    return None if name in ("", GENERAL) else name
