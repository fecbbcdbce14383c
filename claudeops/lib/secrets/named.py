"""Find values behind a name: password=…, "token": "…", the password of X is …, recovery codes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from claudeops.lib.secrets.span import NAMED, Span
from claudeops.lib.secrets.table import TABLE
from claudeops.lib.secrets.values import COMMON, UNMISTAKABLE, UUID, is_code, is_mixed, is_placeholder, is_token

CLOSE = r"""[\\"'`*\]]{0,6}"""
BLANK = r"[ \t\u00a0]{0,8}"
ASSIGNED = re.compile(
    rf"{CLOSE}{BLANK}(?:\{{[^{{}}\n\x00]{{0,60}}?\bdefault\s{{1,8}})?(?P<sep>:=|=>|->|==|\?=|=|:(?![:/]{{2}})|：|＝){BLANK}(?:\*\*|__)?{BLANK}"
    r"(?:(?:[Ss]tr(?:ing)?|SecretStr|&str|bytes)\b\??\s?=\s?)?(?:[|>][+-]?[ ]*\n[ \t]+)?(?:[rbuf](?=[\"']))?(?=\S)"
)
CALLED = re.compile(r"\((?=\\{0,2}[\"'])")
CLOSED_TAG = re.compile(r">(?=[^<\x00]{3,200}</)")
CUE = re.compile(
    r"(?=[iwalseèäjbhtэ是为為は—–→\-(:=])(?:"  # a cue's first letters, so that most places fail at once
    r"\b(?:is|was|are|lautet|ist|war|sind|es|est|era|è|är|er|jest|equals?|becomes|heißt|to|это|será|sera)\b:?[ ]"
    r"(?:now |currently |jetzt |still |just |set to |changed to |reset to |ahora |maintenant |simply |again )?"
    r"|是|为|為|は|[—–→]|->|(?<=\s)-(?=\s)|\((?=[^)\s]+\))|[:=](?=[ ]))"
)
TAIL = re.compile(r"[\w-]{0,40}")
TAIL_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
NOT_ITS_VALUE = frozenset(TABLE["values"]["not_its_value"])
QUOTES = {"“": "”", "„": "“", "«": "»", "‘": "’", "「": "」"}
QUOTE = re.compile(r"\\{0,3}[\"'`]|[“„«‘「]")
_CLOSING = {mark: mark for mark in "\"'`"} | QUOTES
QUOTED = [  # by the number of backslashes before the quote: JSON within JSON escapes it
    {
        mark: re.compile(
            rf"([^\n\x00]{{1,400}}?)(?<!\\)\\{{{level}}}{closing}"
            if level
            else rf"((?:[^\\\n\x00{closing}]|\\[^\n\x00]){{1,400}}+){closing}"
        )
        for mark, closing in _CLOSING.items()
    }
    for level in range(4)
]
BARE = re.compile(r"""[^\s\x00"'`“”„«»，。；、）」】]{1,400}+""")
BARE_END = re.compile(
    r"&(?=[\w.\[\]%-]{1,40}=)|[,;](?=\s?[\w.-]{1,40}[=:])|\\+[nrt](?![a-z])|\\+(?=[\"'])|\\$|</|&(?:quot|amp|lt|gt|#\d+);"
)
CLOSING = (")", "]", "}", ">")
LINE_BEGINS = re.compile(r"[\s>*\-\"'\\+|]*(?:export |set |env |- |\d+[.)] )?[\w.\"'\\ -]{0,30}\Z")
DASHES = re.compile(r"(?<![\w-])--?[\w-]{0,30}\Z")
AFTER_USER = re.compile(r"(?i)\b(?:login|user(?:name)?|account|identity|wifi connect)\s+\S{1,64}\s+\Z")
NUMBERED = re.compile(r"[ ][05789][ ](?P<value>[^\s\x00]{4,100})(?=\s|$)")


@lru_cache(maxsize=4)  # names that stand behind each other look at the same places: each reads three
def value_at(text: str, place: int) -> tuple[int, int, bool]:
    """Where the value at a place begins and ends, and whether it is quoted."""
    quote = QUOTE.match(text, place)
    if quote:
        if closed := QUOTED[quote[0].count("\\")][quote[0][-1]].match(text, quote.end()):
            return quote.end(), closed.end(1), True
        place = quote.end()
    bare = BARE.match(text, place)
    if bare is None:
        return place, place, False
    value = bare[0]
    if not value.isalnum() and (cut := BARE_END.search(value, 1)):
        value = value[: cut.start()]
    for opening, closing in ("()", "[]", "{}", "<>") if value.endswith(CLOSING) else ():
        while value.endswith(closing) and opening not in value:
            value = value[:-1].rstrip(".,;:")
    value = value.rstrip(",;")
    if value.endswith((".", ":", "?")):
        value = value[:-1]
    return place, place + len(value), False


LONGEST_IN_PROSE = 100
PROSE = frozenset(TABLE["values"]["prose"])


def _words_are_prose(value: str) -> bool:
    words = value.lower().split()
    return value.endswith(".") or any(word.strip(".,:!?") in PROSE for word in words)


def _accepted(value: str, quoted: bool, separator: str, strong: bool, whole_line: bool) -> bool:
    if len(value) < 3 or len(value) > (LONGEST_IN_PROSE if separator == "is" else 400):
        return False
    low = value.lower()
    if value.isalpha() and not quoted and separator == "is":
        return strong and low in COMMON
    if (not strong and PAIR_OF.match(value)) or is_placeholder(value):
        return False
    if not strong:
        return is_token(value) and (quoted or not is_code(value))
    if quoted and " " in value:
        return separator in "=:" and not _words_are_prose(value)
    if separator == "=":
        return quoted or not is_code(value)
    if separator == ":" and (quoted or whole_line):
        return not (is_code(value) and not quoted) and not low.endswith(("…", "..."))
    if low in COMMON:
        return True
    if separator == "is" and quoted:
        return not is_code(value) and len(value) >= 4
    return is_mixed(value)


def named(strong: bool, short: bool, kind: str, text: str, low: str, place: int, end: int) -> Iterator[Span]:
    """What stands behind a name that stands at a place."""
    after = _end_of_name(short, text, place, end)
    if after is None:
        return
    begins = max(0, place - 40)
    is_option = text.find("-", begins, place) >= 0 and DASHES.search(text, begins, place)
    option = _option(text, after, strong) if is_option else None
    if option:
        yield (*option, kind, NAMED)
    elif assigned := ASSIGNED.match(text, after):
        if span := _assigned(strong, short, text, place, assigned):
            yield (*span, kind, NAMED)
        elif assigned["sep"] in PROSE_SEPARATORS and not QUOTE.match(text, assigned.end()):
            yield from _in_prose(strong, kind, text, place, after)
    elif span := _enclosed(strong, text, after):
        yield (*span, kind, NAMED)
    else:
        yield from _in_prose(strong, kind, text, place, after)


PROSE_SEPARATORS = (":", "：", "->")


def _end_of_name(short: bool, text: str, place: int, end: int) -> int | None:
    """Where the whole name ends (password_prod); None for a part of another word and what is about a secret."""
    if text[place - 1 : place] == ":":  # arn:aws:…:secret:name
        return None
    if place and text[place - 1].isalnum() and short and not (text[place].isupper() and text[place - 1].islower()):
        return None
    match = TAIL.match(text, end)
    tail = match[0] if match else ""
    if not tail or tail in PLURALS:
        return end + len(tail)
    if not tail[0].isalpha():
        return None if any(word.lower() in NOT_ITS_VALUE for word in TAIL_WORDS.findall(tail)) else end + len(tail)
    if short:
        return None
    if tail[0].isupper() and text[end - 1].islower():  # passwordHash
        return None if any(word.lower() in NOT_ITS_VALUE for word in TAIL_WORDS.findall(tail)) else end + len(tail)
    return None if tail[0].isascii() or text[end - 1].isascii() else end  # no space before the next word: 密码是…


def _assigned(strong: bool, short: bool, text: str, place: int, assigned: re.Match[str]) -> tuple[int, int] | None:
    """`name = VALUE`, `"name": "VALUE"`."""
    if short and assigned["sep"] == "==":  # the end of base64
        return None
    separator = ":" if assigned["sep"] in PROSE_SEPARATORS else "="
    start, stop, quoted = value_at(text, assigned.end())
    value = text[start:stop]
    if strong and not quoted and value.isdigit():
        if assigned[0][0] in "\"'\\" and len(value) > 3 and len(set(value)) > 1:  # a number in JSON
            return start, stop
        if short and separator == "=":  # pass=3
            return None
    whole = not quoted and text[stop : stop + 2].strip(" \t,;.")[:1] in ("", "\n", "\r")
    whole = whole and bool(LINE_BEGINS.fullmatch(text[text.rfind("\n", max(0, place - 60), place) + 1 : place]))
    return (start, stop) if _accepted(value, quoted, separator, strong, whole) else None


def _enclosed(strong: bool, text: str, after: int) -> tuple[int, int] | None:
    """`password("VALUE")`, `<password>VALUE</password>`."""
    if text[after : after + 1] not in (">", "("):
        return None
    if tag := CLOSED_TAG.match(text, after):
        start, stop = tag.end(), text.index("<", tag.end())
    elif strong and (called := CALLED.match(text, after)):
        start, stop, _ = value_at(text, called.end())
    else:
        return None
    return (start, stop) if _accepted(text[start:stop], True, "=", strong, False) else None


PAIR_OF = re.compile(r"[\w.-]+=[^=]")
PLURALS = ("s", "es", "en", "er", "e", "n")


def _option(text: str, after: int, strong: bool) -> tuple[int, int] | None:
    """The value of an option on a command line: --password VALUE, --token=VALUE."""
    if text[after : after + 1] not in (" ", "="):
        return None
    start, stop, quoted = value_at(text, after + 1)
    value = text[start:stop]
    if len(value) < 3 or value.startswith("-") or is_placeholder(value):
        return None
    if not strong and not (quoted or text[after] == "=" or is_token(value, 6)):
        return None
    return None if is_code(value) and not (strong and not value.startswith("/")) else (start, stop)


def _in_prose(strong: bool, kind: str, text: str, place: int, after: int) -> Iterator[Span]:
    """`the password of X is VALUE`, `password VALUE`."""
    line = text.find("\n", after, after + 80)
    end = line if line >= 0 else min(len(text), after + 80)
    blank = text[after : after + 1] in (" ", "\t")
    first = FIRST_WORD.match(text, after) if blank else None
    if first and first[1].lower() in NOT_ITS_VALUE and first[1].lower() not in ("on", "at"):
        return
    if blank and (strong or kind == "secret") and (numbered := NUMBERED.match(text, after)):
        yield numbered.start("value"), numbered.end("value"), kind, NAMED
        return
    if strong and text[after : after + 1] == " ":
        start, stop, quoted = value_at(text, after + 1)
        value = text[start:stop]
        if 3 <= len(value) <= 100 and (
            _stands_alone(value, quoted)
            or (AFTER_USER.search(text, max(0, place - 90), place) and not is_placeholder(value) and not is_code(value))
        ):
            yield start, stop, kind, NAMED
            return
    gap = GAP.match(text, after, end)
    for cue in islice(CUE.finditer(text, after, gap.end() if gap else after), CUES):
        begin = cue.end() + (text[cue.end() : cue.end() + 1] == " ")
        ahead = text[begin : begin + LONGEST_IN_PROSE + 1]
        if ahead.isalnum() and len(ahead) > LONGEST_IN_PROSE:  # too long, wherever it ends
            continue
        start, stop, quoted = value_at(text, begin)
        if _accepted(text[start:stop], quoted, "is", strong, False):
            yield start, stop, kind, NAMED
            return


GAP = re.compile(r"(?:[^\W_]++|[ \t:,.'’()/@—–→>`“”„«»=-]++)*+", re.UNICODE)
"""What may stand between a name and its value in prose."""


def _stands_alone(value: str, quoted: bool) -> bool:
    """Whether a value behind a name and a mere space is one."""
    if value.lower() in (COMMON if quoted else UNMISTAKABLE):
        return True
    return not value.isalpha() and is_mixed(value) and not is_placeholder(value)


CUES = 3
FIRST_WORD = re.compile(r"[ \t]+([A-Za-z]+)")

CODE_VALUE = re.compile(
    r"(?:\w{0,10})" + CLOSE + r"(?:[ ]?(?:[:=]|：|\bis\b|\bist\b|\best\b|\bes\b|是)[ ]?|[ ])[\\\"'`*]{0,3}"
    r"(?P<value>\d{4,8}|\d{3}[ -]\d{3}|\d{4}[ -]\d{4}|\d{3}-\d{2}-\d{3})(?![\w.:-])"
)
CODES_VALUE = re.compile(
    r"(?:s|n)?"
    + CLOSE
    + r"[^\n\x00:=]{0,40}?(?:[:=]|：|\bare\b|\bis\b|\bsind\b|\bist\b|\bson\b|\bsont\b)[\s\\\"'`*\[]{0,6}"
    r"(?P<value>(?:(?:\d{1,2}[.)] )?"
    r"(?=[A-Za-z0-9-]*\d)[A-Za-z0-9]{4,40}(?:-[A-Za-z0-9]{3,12}){0,12}(?:\\n|[\s,;\"'|]){0,6}){1,20})"
)
SEED_VALUE = re.compile(
    CLOSE
    + r"[^\n\x00:=]{0,40}?(?:[:=]|\bis\b|\bist\b)[\s\\\"'`*]{0,4}(?P<value>[A-Za-z2-7]{4}(?:[ -][A-Za-z2-7]{4}){3,15})"
)
PHRASE_VALUE = re.compile(
    r"[^\n\x00:=]{0,40}?(?:[:=]|：|\bis\b|\bist\b)[\s\\\"'`*\[]{0,6}(?P<value>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){5,23})"
)


def coded(pattern: re.Pattern[str], kind: str, text: str, low: str, place: int, end: int) -> Iterator[Span]:
    """PINs, recovery codes, seeds and the words of a seed phrase."""
    if place and text[place - 1].isalnum():
        return
    if match := pattern.match(text, end):
        value = match["value"].rstrip(" \t\r\n,;\"'\\|")
        if len(set(value)) > 1 and not UUID.fullmatch(value):
            yield match.start("value"), match.start("value") + len(value), kind, NAMED


PAIR = re.compile(
    r"[s:=]{0,2}[ \t]{0,2}(?:(?:is|are|as|with|for|of|sind|son|sont|:|=|\w{1,20}:) ?){0,2}"
    r"[\"'`(]{0,2}[A-Za-z][\w.@-]{1,40}[\"'`]?[ ]?(?:[/:|]|and|with)[ ]?[\"'`]?"
    r"(?P<value>[^\s\x00\"'`/][^\s\x00\"'`]{3,60})"
)


def pair(text: str, low: str, place: int, end: int) -> Iterator[Span]:
    """`credentials: admin / VALUE`."""
    if (match := PAIR.match(text, end)) and not (place and text[place - 1].isalnum()):
        start, stop, _ = value_at(text, match.start("value"))
        value = text[start:stop]
        if not is_placeholder(value) and (is_mixed(value) or value.lower() in COMMON):
            yield start, stop, "password", NAMED
