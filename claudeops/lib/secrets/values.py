"""Judge whether a value is a secret: not a placeholder, not an ordinary word, random enough. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise

from claudeops.lib.secrets.table import TABLE

COMMON = frozenset(TABLE["values"]["common"])
UNMISTAKABLE = frozenset(TABLE["values"]["unmistakable"])
STATUS = frozenset(TABLE["values"]["status"])

PLACEHOLDER = re.compile(
    r"""[<({\[%$#@!|>&\\].*            # <password>, ${X}, {{ x }}, %(x)s, $(x), [x], !vault, &anchor
    | .*\$\{.* | .*\{\{.* | .*\$\(.*   # a part of it is filled in
    | (?i:x{3,}|\W+|(?P<one>.)(?P=one)+|[-+]?(?P<digit>\d)(?:[.e+-]*(?P=digit))*)  # xxxx, …, ----, 1111
    | (?i:[\w.-]*(?:redacted|masked|placeholder|omitted|withheld|censored)[\w.-]*)
    | (?i:(?:your|my|some|the|insert|enter|put|replace)[-_ ].*)
    | (?i:(?:op|vault|env|file|ref|secret|ssm|bw|keychain|aws|gcp|sm)(?:\+\w+)?:(?://)?[\w./:-]+) # a reference
    | [A-Za-z_][\w.]*[(\[].*           # a call, an index
    """,
    re.VERBOSE | re.DOTALL,
)
CODE = re.compile(r"[a-zA-Z_]+(?:\.[a-zA-Z_]+)+|[A-Z]+(?:_[A-Z0-9]+)+|(?:[a-z]+[A-Z])[A-Za-z]*|[a-z]+(?:_[a-z]+)+")
"""Names in a program: request.password, DB_PASSWORD, userPassword, user_password."""
PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[\w.@+ -]{1,40}[/\\])*[\w.@+-]{0,40}")
HARMLESS = re.compile(
    r"""v?\d+(?:[.,]\d+)+[\w.+-]* | v\d+\w{0,3}                                # versions, numbers
    | \d{1,4}[-/.:]\d{1,2}[-/.:]\d{1,4}(?:[T_ ].*)? | \d{1,2}:\d{2}\S{0,12}    # dates, times
    | [\d.,]+(?:[a-zµ%]{1,2}|ms|sec|min|days?|weeks?|hours?|months?|years?|bytes?|bits?|chars?|[kmgt]i?b|k)(?:/\w+)?
    | \d{1,3}(?:\.\d{1,3}){3}(?:[:/]\d+)? | \[?(?=[0-9a-f]*:)[0-9a-f:]{2,39}\]?(?::\d+)? # addresses
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+ | \w+://\S*
    | [\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|local|lan|home|internal|svc)(?::\d+)?\S*
    | (?:sha|md|rs|hs|es|ps|ed|aes|rsa|utf|base|oauth|x|pbkdf|argon|http|ipv|crc|
        ecdsa|blake|hmac|scram|x25|tls|ssl|latin|win|cp|iso)-?\d[\w-]*
    | [\w./-]+\.(?:py|js|ts|go|rs|c|h|java|rb|php|sh|json|ya?ml|toml|ini|conf|cfg|txt|md|html?|xml|
        env|pem|key|crt|log|sql|service|sock)(?::\d+)*
    | \d+:\d[\w.+~:-]* | [A-Za-z][\w.-]*:\d{2,5} | \d+(?:st|nd|rd|th) | line\d* | \d+/\d+ | \d+-\d+ | x:\d+.*
    | [A-Z]+(?:_[A-Z0-9]+)+ | (?:[a-z]{2,}[-_.:/@])+[a-z]{2,}\d{0,2} | \d+[x×*]\d+
    """,
    re.VERBOSE | re.DOTALL,
)
OBJECT_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-.][a-z0-9]+)+")
"""Names of objects: default-token-x7k2p."""
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
SYMBOL = re.compile(r"[^\w\s.,:;/@()\[\]{}<>'\"|-]")


def is_placeholder(value: str) -> bool:
    """Whether a value stands for another one, says that there is none, or is hidden already."""
    return value.lower() not in COMMON and (
        PLACEHOLDER.fullmatch(value[:300]) is not None or value.lower().strip(".!?") in STATUS
    )


def is_mixed(value: str, least: int = 6) -> bool:
    """Whether a value mixes letters with digits or symbols, as chosen passwords do and ordinary words do not."""
    if len(value) < least or HARMLESS.fullmatch(value[:120]) or PATH.fullmatch(value[:200]):
        return False
    letters = any(character.isalpha() for character in value)
    if any(character.isdigit() for character in value):
        return letters or SYMBOL.search(value) is not None
    return letters and SYMBOL.search(value) is not None


def is_token(value: str, least: int = 8) -> bool:
    """Whether a value looks made by a machine: letters and digits, and not the name of an object."""
    value = value[:100]
    if UUID.fullmatch(value):
        return True
    varied = any(c.isdigit() or c.isupper() for c in value)
    if len(value) >= 16 and varied and changes(value) >= 0.3:
        return True
    if OBJECT_NAME.fullmatch(value):
        return False
    return is_mixed(value, least)


def is_code(value: str) -> bool:
    """Whether a value is the name of a variable or a path."""
    return CODE.fullmatch(value) is not None or PATH.fullmatch(value) is not None


def is_user_and_password(value: str) -> bool:
    """Whether a value is the base64 of "user:password"."""
    read = decoded(value)
    return read is not None and 0 < read.find(":") < len(read) - 2 and "\n" not in read.strip()


def decoded(value: str) -> str | None:
    """The text that a value is the base64 of; None when it is none."""
    plain = value.rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) % 4 == 1:
        return None
    try:
        read = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return read if all(character.isprintable() or character in "\r\n\t" for character in read) else None


def changes(value: str) -> float:
    """The share of neighbours of another class (lower, upper, digit): about 0.6 of random letters and digits."""
    classes = [("d" if c.isdigit() else "u" if c.isupper() else "l") for c in value if c.isalnum()]
    return sum(a != b for a, b in pairwise(classes)) / max(1, len(classes) - 1)


LEAST_RANDOM, MOST_RANDOM = 32, 200
"""Characters. A shorter value is too often an id, a longer one is data."""
RUN = re.compile(rf"[A-Za-z0-9+/_=-]{{{LEAST_RANDOM},}}")
PIECES = re.compile(r"[/_-]")
PUBLIC_ENDINGS = tuple(TABLE["values"]["public"])
"""What stands before a long random value that is no secret."""
PUBLIC_WORD = re.compile(r"[a-z0-9][a-z0-9_.-]*")
PUBLIC_BEGINNING = re.compile(
    r"sha\d+[-_=]|AAAA[BCE]|MI[IH]|toolu_|msg_|req_|chatcmpl|resp_|call_|srvtoolu_|iVBOR|/9j/|R0lGOD|UklGR|data|pi_|cus_|evt_|well-known|HTTP/"
)


def is_random(value: str, before: str, after: str) -> bool:
    """Whether a run of letters and digits is a secret by itself; `before` and `after` are what stands beside it."""
    if len(value) > MOST_RANDOM or PUBLIC_BEGINNING.match(value):
        return False
    words = PUBLIC_WORD.findall(before.lower())
    if words and len(words[-1]) < 24 and words[-1].strip("-._").endswith(PUBLIC_ENDINGS):
        return False
    if len(words) > 1 and words[-2] == "public" and words[-1] == "key":
        return False
    if after.startswith(
        (".js", ".css", ".woff", ".map", ".png", ".svg", ".jpg", ".webp", ".mjs", ".ttf", ".ts", ".html")
    ):
        return False
    separators = len(PIECES.findall(value))
    if value[0] == "/" or separators > len(value) / 10:
        return any(len(piece) >= LEAST_RANDOM and _looks_random(piece) for piece in PIECES.split(value))
    return _looks_random(value) and decoded(value) is None


def _looks_random(value: str) -> bool:
    if not (
        any(c.islower() for c in value) and any(c.isupper() for c in value) and sum(c.isdigit() for c in value) > 1
    ):
        return False
    return changes(value) >= 0.4 and len(set(value)) >= min(18, len(value) // 2)
