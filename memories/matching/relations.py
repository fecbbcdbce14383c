"""The answer of matching (`Kind`, `Relation`) and the protocol of a matcher."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Kind(StrEnum):
    """How a new text relates to a known one of the same scope."""

    REINFORCES = "reinforces"
    CONTRADICTS = "contradicts"
    DISTINCT = "distinct"


@dataclass(frozen=True, slots=True)
class Relation:
    """An answer. `score` (0..1) is how much the two texts share; `evidence` is JSON-able and says why."""

    kind: Kind
    score: float
    evidence: dict[str, Any]

    @property
    def why(self) -> str:
        """One plain sentence."""
        return str(self.evidence["why"])


class Matcher(Protocol):
    """Compares text with text. Both are of one scope: same taxonomy, category, service and so on."""

    def relation(self, known: str, new: str, *, about: str | None = None, cosine: float | None = None) -> Relation:
        """How `new` relates to `known`. Never raises on any text.

        `about` names what both texts are about (the service of the scope), so that "Jellyfin takes 60s to
        start" and "Takes 60s to start" are one fact about jellyfin. `cosine` (-1..1) is the similarity of the texts'
        embeddings where there are any; alone it never makes two texts one fact, nor two.
        """
        ...
