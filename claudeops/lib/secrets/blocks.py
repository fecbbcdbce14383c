"""Find PEM and PGP private keys: with line breaks, on one line, with \\n for a line break, or cut off. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

HEADER = re.compile(r"-----BEGIN (?P<label>[A-Za-z0-9 ]{0,60})-----")
FOOTER = re.compile(r"-----END (?P<label>[A-Za-z0-9 ]{0,60})(?:-----)?")
PRIVATE = re.compile(r"(?i)PRIVATE KEY|OpenVPN Static key")
BREAK = r"(?:\s|\\+[nrt]|[\"'+,|>#*]){0,12}"
FIELD = rf"{BREAK}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset):[^\n\\]{{0,120}}"
LINE = rf"{BREAK}[A-Za-z0-9+/=]{{16,}}+"
BODY = re.compile(
    rf"(?:{FIELD}){{0,6}}(?:{LINE})++(?:{BREAK}[A-Za-z0-9+/]{{1,15}}={{0,2}}(?![A-Za-z]))?(?:{BREAK}=[A-Za-z0-9+/]{{4}})?{BREAK}"
)
SHORT_BODY = re.compile(rf"(?:{FIELD}){{0,6}}(?:{BREAK}[A-Za-z0-9+/=]{{4,}}+){{1,2000}}+{BREAK}(?=-----END)")
SHORT_LINE = re.compile(r"[A-Za-z0-9+/=]{1,76}")
LAST_LINE = re.compile(r"[A-Za-z0-9+/=]{16,76}")
LONGEST_HALF = 4_000


def private_key(text: str, low: str, place: int, end: int) -> Iterator[tuple[int, int, str, int]]:
    """The private key whose first or last line stands at a place, with that line; none if only the line is there."""
    place -= 5
    if not text.startswith("-----", max(0, place)):
        return
    if header := HEADER.match(text, place):
        if not PRIVATE.search(header["label"]):
            return
        body = SHORT_BODY.match(text, header.end()) or BODY.match(text, header.end())
        if body is None:
            return
        footer = FOOTER.match(text, body.end())
        yield place, footer.end() if footer else header.end() + len(body[0].rstrip()), "private key", 0
    elif (footer := FOOTER.match(text, place)) and PRIVATE.search(footer["label"]):
        first = _first_of_last_lines(text, place)
        if first < place:
            yield first, footer.end(), "private key", 0


def _first_of_last_lines(text: str, end: int) -> int:
    """Where the lines of base64 that end here begin; the last of them may be short."""
    window = text[max(0, end - LONGEST_HALF) : end].replace("\\n", "\n\n").replace("\\r", "\n\n")
    first, position = end, len(window)
    for number, line in enumerate(reversed(window.split())):
        if not (LAST_LINE if number else SHORT_LINE).fullmatch(line):
            break
        position = window.rindex(line, 0, position)
        if number or len(line) >= 40:
            first = end - len(window) + position
    return first


def public_zone(text: str, place: int) -> tuple[int, int]:
    """Where a certificate or a public key that begins here stands: its random lines are no secret."""
    header = HEADER.match(text, place)
    if header is None or PRIVATE.search(header["label"]):
        return place, place
    body = BODY.match(text, header.end())
    return place, body.end() if body else header.end()
