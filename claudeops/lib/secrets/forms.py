"""Find values with a prefix or a form of their own, and those that only a word near them tells. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from claudeops.lib.secrets.span import SURE, Span
from claudeops.lib.secrets.values import OBJECT_NAME, is_code, is_placeholder, is_token, is_user_and_password


def _begins(text: str, place: int) -> bool:
    """Whether a value may begin here: not inside a word; an escape or a percent sequence may stand before it."""
    if place == 0 or not (text[place - 1].isascii() and text[place - 1].isalnum()):
        return True
    before = text[max(0, place - 3) : place]
    return (before[-2:-1] == "\\" and before[-1] in "nrtb") or before[0] == "%"


def _mixes(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def prefixed(
    pattern: re.Pattern[str], kind: str, keep: bool, mixed: bool, text: str, low: str, place: int, end: int
) -> Iterator[Span]:
    if not (keep or _begins(text, place)):
        return
    match = pattern.match(text, place)
    if match is None or len(set(match["value"])) < 4 or (mixed and not _mixes(match["value"])):
        return
    if (
        mixed
        and match.start("value") - place <= 3
        and OBJECT_NAME.fullmatch(match["value"])
        and not is_token(match["value"])
    ):
        return
    yield match.start("value") if keep else place, match.end(), kind, SURE - (match.start("value") - place)


CHECKS: dict[str, Callable[[str], bool]] = {
    "user and password in base64": is_user_and_password,
    "mixed": lambda value: is_token(value, 10) or (len(value) >= 20 and value.isalnum()) or len(value) > 40,
    "": lambda value: len(set(value)) > 1 or len(value) < 3,
}


def shaped(
    pattern: re.Pattern[str], kind: str, back: int, check: str, text: str, low: str, place: int, end: int
) -> Iterator[Span]:
    if back:
        tries = (pattern.match(text, start) for start in range(max(0, place - back), place + 1))
        match = next((one for one in tries if one and one.end() >= place), None)
    else:
        match = pattern.match(text, place)
    if match is None:
        return
    name = "value" if "value" in pattern.groupindex else 0
    value = match[name]
    if (
        name == 0
        and not _begins(text, match.start())
        and not (back and value[0].isdigit() and text[match.start() - 1].isalpha())
    ):
        return
    if CHECKS[check](value) and not (name and is_placeholder(value)):
        yield match.start(name), match.end(name), kind, SURE


KEYED = re.compile(r"key|token|secret|auth|pass|cred|login|sid|private")


def near(
    pattern: re.Pattern[str], kind: str, mixed: bool, keyed: bool, text: str, low: str, place: int, end: int
) -> Iterator[Span]:
    match = pattern.search(text, end, end + 60 + LONGEST_NEAR)
    if match is None or match.start() > end + 60 or "\n" in text[end : match.start()]:
        return
    between = low[place : match.start()]
    if (keyed and not KEYED.search(between)) or "sha" in between or "digest" in between or "commit" in between:
        return
    value = match[0]
    if len(set(value)) < 5 or (mixed and not (_mixes(value) and (value.isalnum() or not is_code(value)))):
        return
    if mixed and len(value) == 40 and re.fullmatch(r"[0-9a-f]+", value):
        return
    yield match.start(), match.end(), kind, SURE


LONGEST_NEAR = 64
