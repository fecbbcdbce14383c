"""Decide whether a memory's tag matches what a task is about: its words, and the paths it may write or should read.

Pure. A tag with `/`, `*` or `?` is a glob, another one is a keyword.

A keyword matches when its words stand in the title or description one after another, casefolded, whole words. A glob
matches a path or glob of the task when one covers the literal part of the other, which is what stands before its first
wildcard. `*` and `?` stand for characters within a folder, `**` for any folders; a path covers what is below it; a glob
without `/` applies in every folder. Brackets are letters, as in the names of files. An empty literal part is not
covered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import re2

WILDCARD = re.compile(r"[*?]")
WORD = re.compile(r"\w+")
PARTS = re.compile(r"\*\*/?|\*|\?|[^*?]+")


@dataclass(frozen=True)
class Subject:
    """What a task is about: its title and description in one text, and its paths or globs."""

    text: str = ""
    paths: tuple[str, ...] = ()

    @cached_property
    def words(self) -> tuple[str, ...]:
        return words_of(self.text)

    @cached_property
    def spoken(self) -> str:
        """The words between single spaces, with one at either end."""
        return f" {' '.join(self.words)} "

    @cached_property
    def globs(self) -> tuple[str, ...]:
        return tuple(filter(None, map(tidied, self.paths)))


def words_of(text: str) -> tuple[str, ...]:
    return tuple(WORD.findall(text.casefold()))


def is_glob(tag: str) -> bool:
    return "/" in tag or WILDCARD.search(tag) is not None


def matches(tag: str, subject: Subject) -> bool:
    if is_glob(tag):
        glob = tidied(tag)
        return bool(glob) and any(overlap(glob, other) for other in subject.globs)
    words = words_of(tag)
    return bool(words) and f" {' '.join(words)} " in subject.spoken


def matched(tags: Iterable[object], subject: Subject) -> tuple[str, ...]:
    """Return the tags that match, in their order. What is no text is no tag."""
    return tuple(tag for tag in tags if isinstance(tag, str) and matches(tag, subject))


def tidied(glob: str) -> str:
    """Return a glob without the marks of where it begins and ends: `./src/core/` is `src/core`."""
    return glob.strip().removeprefix("./").strip("/")


def overlap(one: str, other: str) -> bool:
    return covers(one, other) or covers(other, one)


def covers(glob: str, other: str) -> bool:
    """Whether `glob` covers the literal part of `other`."""
    literal = WILDCARD.split(other, maxsplit=1)[0].rstrip("/")
    return bool(literal) and _pattern(glob).fullmatch(literal) is not None


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re2._Regexp:
    """Compile a glob with RE2, which takes linear time: a tag is text from outside."""
    anywhere = "" if "/" in glob else "(?:.*/)?"
    below = glob.removesuffix("/**")
    body = "".join(map(_translated, PARTS.findall(below)))
    return re2.compile(f"(?s){anywhere}{body}(?:/.*)?")


def _translated(part: str) -> str:
    patterns = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return patterns.get(part) or re2.escape(part)
