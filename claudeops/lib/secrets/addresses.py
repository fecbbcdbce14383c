"""Find values in addresses, cookies and command lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from claudeops.lib.secrets.named import value_at
from claudeops.lib.secrets.span import NAMED, Span
from claudeops.lib.secrets.values import is_placeholder, is_token


def query(text: str, low: str, place: int, end: int) -> Iterator[Span]:
    """`?sig=VALUE` in an address."""
    if place == 0 or text[place - 1] not in "?&;":
        return
    match = QUERY_VALUE.match(text, end)
    if match and is_token(match[0], 10) and not is_placeholder(match[0]):
        yield match.start(), match.end(), "key in an address", NAMED


QUERY_VALUE = re.compile(r"[A-Za-z0-9%._~+/=-]{10,2000}+")
AUTHORITY = re.compile(r"""://(?P<user>[^\s/?#@:"'<>\x00]{0,100}):(?P<value>[^\s"'<>\x00]{1,200}?)@(?=[\w.\[\]-])""")
BARE_USER = re.compile(r"""://(?P<value>[^\s/?#@:"'<>\x00]{16,300})(?::x-oauth-basic)?@""")


def authority(text: str, low: str, place: int, end: int) -> Iterator[Span]:
    """`scheme://user:VALUE@host`, `https://TOKEN@host`."""
    if match := AUTHORITY.match(text, place):
        value = match["value"]
        port = re.match(r"\d{1,5}(?:/|$)", value)
        if not port and not is_placeholder(value) and not ("/" in value and re.search(r"[?&=]", value)):
            yield match.start("value"), match.end("value"), "password in an address", NAMED
    elif (match := BARE_USER.match(text, place)) and is_token(match["value"], 16):
        yield match.start("value"), match.end("value"), "password in an address", NAMED


COOKIES = re.compile(
    r"[\\\"']{0,3}\s?[:=]\s?[\\\"'\[]{0,3}(?P<all>[^\s=;,\"'\x00]{1,80}=[^;\"'\n\x00\\]{0,400}(?:;\s?[^\s=;,\"'\x00]{1,80}=[^;\"'\n\x00\\]{0,400}){0,20})"
)
COOKIE = re.compile(r"(?P<name>[^\s=;,]{1,80})=(?P<value>[^;]{8,})")
NOT_COOKIES = frozenset(["path", "domain", "expires", "max-age", "samesite", "priority"])


def cookie(text: str, low: str, place: int, end: int) -> Iterator[Span]:
    if match := COOKIES.match(text, end):
        for one in COOKIE.finditer(text, match.start("all"), match.end("all")):
            value = one["value"]
            if one["name"].lower() not in NOT_COOKIES and is_token(value.split(" ")[0]):
                yield one.start("value"), one.start("value") + len(value.rstrip()), "cookie", NAMED


def command(option: re.Pattern[str], kind: str, text: str, low: str, place: int, end: int) -> Iterator[Span]:
    if (place and (text[place - 1].isalnum() or text[place - 1] in "_-.")) or text[end - 1 : end + 1].isalnum():
        return
    line = text.find("\n", end, end + 300)
    stop = line if line >= 0 else min(len(text), end + 300)
    for match in option.finditer(text, end, stop):
        start, finish, _ = value_at(text, match.end())
        value = text[start:finish]
        if len(value) >= 3 and not value.startswith("-") and not is_placeholder(value) and not PATHLIKE.match(value):
            yield start, finish, kind, NAMED
            return


PATHLIKE = re.compile(r"[~.]{0,2}/\S*/|\d{1,5}:\d{1,5}")
