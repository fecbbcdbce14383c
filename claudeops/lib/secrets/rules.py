"""The rules by their triggers: where one stands in the text, its rule looks for the value there. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

from claudeops.lib.secrets.addresses import authority, command, cookie, query
from claudeops.lib.secrets.blocks import private_key, public_zone
from claudeops.lib.secrets.forms import near, prefixed, shaped
from claudeops.lib.secrets.named import CODE_VALUE, CODES_VALUE, PHRASE_VALUE, SEED_VALUE, coded, named, pair
from claudeops.lib.secrets.span import NAMED, RANDOM, SURE, Rule, Span, plain
from claudeops.lib.secrets.table import TABLE
from claudeops.lib.secrets.values import RUN, decoded, is_random

SHORTEST = 4
"""Characters. No rule finds anything in a shorter text."""


def spans(text: str) -> Iterator[Span]:
    """All that the rules find; may overlap."""
    if len(text) < SHORTEST:
        return
    low = plain(text)
    for pattern, kind in ANYWHERE:
        for match in pattern.finditer(text):
            yield match.start(), match.end(), kind, SURE
    public: list[tuple[int, int]] = []
    for place, word in triggers_of(low):
        if word == "begin" and text[place - 5 : place] == "-----":
            public.append(public_zone(text, place - 5))
        for length, rule in RULES[word]:
            yield from rule(text, low, place, place + length)
    yield from _random(text, public)


def _random(text: str, public: list[tuple[int, int]]) -> Iterator[Span]:
    """Long random values, and base64 of a text that holds a secret."""
    for run in RUN.finditer(text):
        start, end = run.span()
        if any(first <= start < last for first, last in public):
            continue
        value = run[0]
        cut = value.rfind("=", 0, len(value.rstrip("=")))
        if cut >= 0:  # name=VALUE
            start, value = start + cut + 1, value[cut + 1 :]
            if len(value) < 32:
                continue
        before = text[max(0, start - 40) : start]
        if is_random(value, before, text[end : end + 6]):
            yield start, end, "random value", RANDOM
        elif (
            len(value) <= 4000 and not before.endswith("base64,") and (inner := decoded(value)) and _holds_secret(inner)
        ):
            yield start, end, "secret in base64", RANDOM


def _holds_secret(inner: str) -> bool:
    low = plain(inner)
    for place, word in triggers_of(low):
        for length, rule in RULES[word]:
            if any(rule(inner, low, place, place + length)):
                return True
    return False


def _trie(words: list[str]) -> str:
    """A pattern that matches the longest of the words."""
    branches: dict[str, list[str]] = {}
    for word in words:
        if word:
            branches.setdefault(word[0], []).append(word[1:])
    if not branches:
        return ""
    parts = [re.escape(first) + _trie(rest) for first, rest in sorted(branches.items())]
    joined = parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
    return f"(?:{joined})?" if "" in words else joined


def _alphabet(row: dict[str, Any]) -> str:
    return str(TABLE["alphabets"][row["alphabet"]])


def _of_forms() -> Iterator[tuple[str, Rule]]:
    table = TABLE["rules"]
    for row in table["prefixed"]:
        least, most = row["length"]
        for prefix in row["prefix"]:
            pattern = re.compile(rf"{re.escape(prefix)}(?P<value>[{_alphabet(row)}]{{{least},{most}}}+)")
            yield prefix, partial(prefixed, pattern, row["kind"], row.get("keep", False), row.get("mixed", False))
    for row in table["shaped"]:
        rule = partial(shaped, re.compile(row["pattern"]), row["kind"], row.get("back", 0), row.get("check", ""))
        for word in row.get("at", []):
            yield word, rule
    for row in table["near"]:
        (least, most), letters = row["length"], _alphabet(row)
        pattern = re.compile(rf"(?<![A-Za-z0-9])[{letters}]{{{least},{most}}}(?![A-Za-z0-9{letters}])")
        for word in row["words"]:
            yield word, partial(near, pattern, row["kind"], row.get("mixed", False), row.get("keyed", False))
    for row in table["commands"]:
        option = re.compile(rf"(?<=\s)(?:{row['option']})")
        for program in row["programs"]:
            yield program, partial(command, option, row["kind"])
    yield from (("://", authority), ("cookie", cookie), ("begin", private_key), ("end", private_key))


def _of_names() -> Iterator[tuple[str, Rule]]:
    names = TABLE["names"]
    for strength in ("strong", "weak"):
        for name in set(names[strength]):
            kind = next((word for word in NAME_KINDS if word in name), "password" if strength == "strong" else "secret")
            yield name, partial(named, strength == "strong", name in names["short"], kind)
    for group, pattern, kind in CODED:
        for name in names[group]:
            yield name, partial(coded, pattern, kind)
    for name in names["query"]:
        yield f"{name}=", query
    for name in names["pair"]:
        yield name, pair


NAME_KINDS = ("token", "key", "secret")
CODED = (
    ("code", CODE_VALUE, "code"),
    ("codes", CODES_VALUE, "recovery code"),
    ("seeds", SEED_VALUE, "OTP seed"),
    ("phrase", PHRASE_VALUE, "seed phrase"),
)
KINDS = frozenset(
    {row["kind"] for rows in TABLE["rules"].values() for row in rows}
    | {kind for _, _, kind in CODED}
    | {*NAME_KINDS, "password", "key in an address", "password in an address", "cookie", "private key"}
    | {"random value", "secret in base64"}
)


def _by_trigger() -> dict[str, list[tuple[int, Rule]]]:
    """The rules of each trigger, with its length; those of a trigger that another one begins with are among its own."""
    rules: dict[str, list[Rule]] = {}
    for word, rule in (*_of_forms(), *_of_names()):
        rules.setdefault(plain(word), []).append(rule)
    return {
        word: [(len(shorter), rule) for shorter, some in rules.items() if word.startswith(shorter) for rule in some]
        for word in rules
    }


def triggers_of(low: str) -> Iterator[tuple[int, str]]:
    """Where a trigger stands and which: at the beginning of words, at signs, and for some names within words."""
    for place in _beginnings(low):
        if match := TRIGGER.match(low, place):
            yield place, match[0]
    for name in INSIDE:
        place = low.find(name, 1)
        while place > 0:
            before = low[place - 1]
            if before.isascii() and before.isalnum():
                yield place, name
            place = low.find(name, place + 1)
    if not low.isascii():
        for match in FOREIGN.finditer(low):
            yield match.start(), match[1]


def _beginnings(low: str) -> Iterator[int]:
    """Where a trigger may begin, by its first letters."""
    for word in WORD.finditer(low):
        place = word.start()
        if low[place : place + 3] in FIRST or low[place : place + 2] in FIRST_TWO:
            yield place
        if place and low[place - 1] in "\\%":  # \nghp_…, %20ghp_…
            yield place + (1 if low[place - 1] == "\\" else 2)
    for sign in SIGNS.finditer(low):
        yield sign.start()


RULES = _by_trigger()
ANYWHERE = [(re.compile(row["pattern"]), row["kind"]) for row in TABLE["rules"]["shaped"] if "at" not in row]
TRIGGER = re.compile(_trie(sorted(RULES)))
WORD = re.compile(r"[a-z0-9]+")
SIGNS = re.compile(r"[${]|(?<=q)~|<add|:(?=aa|ap|//)")
FIRST = frozenset(word[:3] for word in RULES if len(word) > 2)
FIRST_TWO = frozenset(word for word in RULES if len(word) == 2)
INSIDE = TABLE["names"]["inside"]
FOREIGN = re.compile(f"(?=({_trie(sorted(word for word in RULES if not word.isascii()))}))")


LONGEST_NAME = 100
"""Characters of a name whose answer is kept."""


@lru_cache(maxsize=4096)
def _names_something(name: str) -> bool:
    """Whether a rule is tried at all behind a name. Most names of columns and keys are asked about again and again."""
    return next(triggers_of(plain(f'{name}: "')), None) is not None


def is_secret_under(name: str, value: str) -> str:
    """The kind of a value by the name that it stands under; "" when it is no secret."""
    if len(name) <= LONGEST_NAME and not _names_something(name):
        return ""
    start = len(name) + 3
    for found_start, _, kind, rank in spans(f'{name}: "{value[:400]}"'):
        if found_start == start and rank == NAMED:
            return kind
    return ""
