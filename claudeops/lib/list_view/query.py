"""Parse and format the text of a query bar: `service:jellyfin fades:<14d "free text"`. Pure.

A token is a name in lower case, a colon and a value. Values and words with spaces or quotes are quoted; within quotes a
backslash precedes a quote or a backslash. Every text can be parsed: an open quote ends with the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

NAME = re.compile(r"[a-z][a-z_]*:")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?\Z)', re.DOTALL)
_BARE = re.compile(r"\S+")
_SPACE = re.compile(r"\s*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Query:
    tokens: tuple[Token, ...] = ()
    words: tuple[str, ...] = ()


def parse(text: str) -> Query:
    """Parse a text; every text is a query."""
    tokens: list[Token] = []
    words: list[str] = []
    at = _end_of_space(text, 0)
    while at < len(text):
        name = NAME.match(text, at)
        value, at = _value(text, name.end() if name else at)
        if name:
            tokens.append(Token(name[0][:-1], value))
        else:
            words.append(value)
        at = _end_of_space(text, at)
    return Query(tuple(tokens), tuple(words))


def format_query(query: Query) -> str:
    """Write a query in its canonical form: tokens, then words, quoted where they must be."""
    tokens = (f"{token.name}:{quoted(token.value)}" for token in query.tokens)
    words = (quoted(word, word=True) for word in query.words)
    return " ".join((*tokens, *words))


def quoted(value: str, *, word: bool = False) -> str:
    """Quote a value where it would not be read back as it is; a `word` also where it looks like a token."""
    if value and '"' not in value and not re.search(r"\s", value) and not (word and NAME.match(value)):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unknown_tokens(query: Query, names: Collection[str]) -> list[str]:
    """Return a message for each token whose name is not among `names`, with the nearest name and a way out."""
    messages = []
    for token in query.tokens:
        if token.name not in names:
            near = get_close_matches(token.name, names, n=1)
            meant = f" Did you mean {near[0]}:?" if near else ""
            whole = quoted(f"{token.name}:{token.value}", word=True)
            messages.append(f"There is no filter {token.name}:.{meant} To search for this text, quote it: {whole}")
    return messages


def parameters(query: Query, text: str) -> Mapping[str, str]:
    """Return the query's filters as parameters: the last value of each name, and the words under the name `text`."""
    filters = {token.name: token.value for token in query.tokens if token.value}
    return {**filters, text: " ".join(query.words)} if query.words else filters


def _value(text: str, at: int) -> tuple[str, int]:
    if match := _QUOTED.match(text, at):
        return _ESCAPED.sub(r"\1", match[1]), match.end()
    bare = _BARE.match(text, at)
    return (bare[0], bare.end()) if bare else ("", at)


def _end_of_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
