"""Whether two texts of one scope say the same, disagree, or are about different things.

`relation` is what the rest of the house calls. Knows no database, no Django, no scope: text against text.
"""

from __future__ import annotations

from collections.abc import Iterable

from .evidence import may_be_one
from .judgement import LexicalMatcher
from .kinds import Kind, Matcher, Relation
from .normalise import LONG, normal_form

__all__ = ["Kind", "LexicalMatcher", "Matcher", "Relation", "matcher", "may_be_one", "read_ahead", "relation"]

matcher: Matcher = LexicalMatcher()
"""What `relation` asks. Anything that meets `Matcher` can take its place."""


def relation(known: str, new: str, *, about: str | None = None, cosine: float | None = None) -> Relation:
    """How `new` relates to `known`, both of one scope; see `Matcher`. Pure, and never raises on any text."""
    return matcher.relation(known, new, about=about, cosine=cosine)


def read_ahead(texts: Iterable[str]) -> None:
    """Read texts that `relation` will soon be asked about: most of what it costs, when it has not met them lately."""
    for text in texts:
        if len(text) <= LONG:  # what is longer is not kept
            normal_form(text)
