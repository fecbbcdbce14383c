"""Judge how two texts of one scope relate: reinforces, contradicts or distinct. Pure; `relation` is the door."""

from __future__ import annotations

from collections.abc import Iterable

from .evidence import may_be_one
from .judgement import LexicalMatcher
from .normalise import LONG, normal_form
from .relations import Kind, Matcher, Relation

__all__ = ["Kind", "LexicalMatcher", "Matcher", "Relation", "matcher", "may_be_one", "read_ahead", "relation"]

matcher: Matcher = LexicalMatcher()
"""The matcher of `relation`; any other `Matcher` can replace it."""


def relation(known: str, new: str, *, about: str | None = None, cosine: float | None = None) -> Relation:
    """Judge how `new` relates to `known`, both of one scope; see `Matcher`. Pure, and never raises on any text."""
    return matcher.relation(known, new, about=about, cosine=cosine)


def read_ahead(texts: Iterable[str]) -> None:
    """Parse texts into the cache before `relation` needs them: parsing is most of its cost."""
    for text in texts:
        if len(text) <= LONG:  # longer texts are not cached
            normal_form(text)
