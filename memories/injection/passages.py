"""The passages of a memory file as a prompt gets them: in the order of the file, each whole or not at all.

What is left of a list may say the opposite of the list, so that a line that is kept back keeps back all that a reader
takes together with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from claudeops.lib.secrets import mask
from claudeops.lib.tracked_file.document import Document
from claudeops.lib.tracked_file.passages import Heading, Part
from memories.capture.gate import judge
from memories.capture.text import fold
from memories.capture.topics import topics
from memories.injection.escape import safe
from memories.models import Verdict

WITH_IT = "left out with what stands beside it: {}"
CODE_STANDS = "it holds code, which is not told"
SECTION_LEVEL = 2
SEPARATORS = re.compile(r"[-_./:@+*~]+")
DEEPEST = 6

X = TypeVar("X")


@dataclass(frozen=True, slots=True)
class Row(Generic[X]):
    """One line, at `at` in its file (from 0). `shown` is its text as it is told, `why_not` keeps it back.

    `of` is the entry that it is; None for prose.
    """

    text: str
    shown: str
    of: X | None = None
    why_not: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class Unit(Generic[X]):
    """Rows that are told together or not at all, below the headings of the file, the highest first."""

    rows: tuple[Row[X], ...]
    headings: tuple[Heading, ...] = ()
    blocked: str = ""

    @property
    def why_not(self) -> str:
        return next((row.why_not for row in self.rows if row.why_not), self.blocked)

    def omissions(self, why: str = "") -> Iterator[tuple[Row[X], str]]:
        """Yield the rows with the reason why each is not told, which is `why` where the unit itself may be told."""
        for row in self.rows:
            yield row, row.why_not or why or WITH_IT.format(self.why_not)


def units(
    document: Document, row_of: Callable[[Part], Row[X]], why_not_heading: Callable[[Heading], str]
) -> list[Unit[X]]:
    """Return the passages of a document in its order."""
    found = []
    for passage in document.passages:
        headings = tuple(one for one in passage.under if one.level >= SECTION_LEVEL)
        blocked = next((why for one in headings if is_sentence(one) and (why := why_not_heading(one))), "")
        found.append(Unit(tuple(map(row_of, passage.parts)), headings, blocked))
    return found


def is_sentence(heading: Heading) -> bool:
    """Whether a heading is judged: up to three words name something, and order nothing. Some scripts have no blanks."""
    return len(heading.text.split()) > 3 or sum(not sign.isascii() for sign in heading.text) >= 8


def row(text: str, of: X | None = None, why_not: str = "", *, part: Part | None = None, before: str = "") -> Row[X]:
    """Return a row with its bullet, below its place in the list; `before` stands before its text, such as a date."""
    indent, mark = ("  " * min(part.depth, DEEPEST), part.mark or "-") if part else ("", "-")
    return Row(text, f"{indent}{mark} {before}{safe(text)}", of, why_not, part.at if part else 0)


def plain(text: str) -> str:
    return mask(fold(text))


@lru_cache(maxsize=4096)
def held(text: str) -> str:
    """Return why the gate holds a text; "" when it does not. Kept, since a hook waits for all lines of a file."""
    judged = judge(text, fold(text))
    return judged.reason if judged.verdict == Verdict.HOLD else ""


def as_words(name: str) -> str:
    """Return the words of a name that stands for one thing, such as a file's: a sentence can be written as one."""
    return SEPARATORS.sub(" ", name).strip()


@lru_cache(maxsize=4096)
def topics_of(text: str) -> tuple[str, ...]:
    return topics(text)
