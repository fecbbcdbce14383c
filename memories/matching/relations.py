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
        return str(self.evidence["why"])


class Matcher(Protocol):
    """Compares two texts of one scope."""

    def relation(self, known: str, new: str, *, about: str | None = None, cosine: float | None = None) -> Relation:
        """Judge how `new` relates to `known`.

        Never raises on any text. `about` names what both are about (the service), so that only one needs to say it.
        `cosine` (-1..1) is the similarity of their embeddings, if any; alone it decides nothing.
        """
        ...
