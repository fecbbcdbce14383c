"""The four taxonomies and their policies, as data; the only place of these numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

TAXONOMY_VERSION = 1

GENERAL = "general"
"""The label of a memory without a service; a service of this name is stored as none."""


@dataclass(frozen=True, slots=True)
class Decay:
    """Decay of confidence: none within `grace` of the last confirmation, then `step` per `every`."""

    grace: timedelta
    every: timedelta
    step: float


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """A vocabulary of categories with the policy of its memories.

    Confidences are 0..1. `scope` names the fields that two memories share if one can repeat or contradict the other.
    `first_confidence` is by source; a missing source takes the statement's. `expires` is by category: how long after
    it was made, approved or reactivated a memory expires, unless its project sets another lifetime (none = never).
    `approved_confidence` is what an approval raises to (None: it leaves the confidence). `credited_by` is what a
    session that used a memory adds when it completes, and takes when it fails.

    `merges`: a restatement is merged into the known memory: it is counted, its time is fresh, and of both confidences
    the higher one counts. `supersedes`: a contradiction ends the older memory. `outside_waits`: what is said after
    outside text was read is provisional, whatever it is about. `rank_decay` is by how much a memory ranks lower for
    each day since its last confirmation: exp(−rank_decay·days). `stale_after`: so long after its last confirmation a
    memory that was never recalled nor told becomes stale, and `closed_after` a stale one is closed (None: never).
    """

    slug: str
    categories: tuple[str, ...]
    scope: tuple[str, ...]
    first_confidence: Mapping[str, float]
    reinforced_by: float
    contradicted_by: float
    inactive_below: float | None
    injected_from: float | None
    decay: Decay | None = None
    expires: Mapping[str, timedelta] = field(default_factory=dict)
    approved_confidence: float | None = None
    credited_by: float = 0.0
    merges: bool = False
    supersedes: bool = False
    outside_waits: bool = False
    rank_decay: float = 0.0
    stale_after: timedelta | None = None
    closed_after: timedelta | None = None

    @property
    def of_many_subjects(self) -> bool:
        """Whether its scope holds memories of many subjects, so that none stands for the others of its scope."""
        return "category" not in self.scope


def _frozen(**values: float) -> Mapping[str, float]:
    return MappingProxyType(values)


OPS = Taxonomy(
    slug="ops",
    categories=("timing", "dependency", "behavior", "remediation", "maintenance"),
    scope=("project", "service", "category"),
    first_confidence=_frozen(run=0.7, learning=0.7),
    reinforced_by=0.1,
    contradicted_by=0.2,
    inactive_below=0.3,
    injected_from=0.3,
    decay=Decay(grace=timedelta(days=30), every=timedelta(weeks=1), step=0.1),
)

PROJECT = Taxonomy(
    slug="project",
    categories=("pattern", "warning", "learning", "context"),
    scope=("project", "category"),
    first_confidence=_frozen(human=1.0, run=0.5, learning=0.3),
    reinforced_by=0.1,
    contradicted_by=0.2,
    inactive_below=0.2,
    injected_from=0.3,
    expires=MappingProxyType(
        {"warning": timedelta(days=90), "learning": timedelta(days=180), "context": timedelta(days=30)}
    ),
    approved_confidence=1.0,
    credited_by=0.1,
)

AGENT = Taxonomy(
    slug="agent",
    categories=(
        "pattern",
        "architecture",
        "guideline",
        "mistake",
        "strategy",
        "integration",
        "performance",
        "context",
        "learning",
    ),
    scope=("project", "agent", "category"),
    first_confidence=_frozen(human=1.0, run=0.7, learning=0.7),
    reinforced_by=0.1,
    contradicted_by=0.2,
    inactive_below=0.2,
    injected_from=0.3,
)

KNOWLEDGE = Taxonomy(
    slug="knowledge",
    categories=(
        "preferences",
        "rules-conventions",
        "system-architecture",
        "operations",
        "memory-system",
        "projects",
        "people-relationships",
    ),
    scope=("project",),
    first_confidence=_frozen(),  # the statement's, which is the gate's
    reinforced_by=0.0,
    contradicted_by=0.0,
    inactive_below=None,
    injected_from=None,
    merges=True,
    supersedes=True,
    outside_waits=True,
    rank_decay=0.01,
    stale_after=timedelta(days=90),
    closed_after=timedelta(days=180),
)

TAXONOMIES: Mapping[str, Taxonomy] = MappingProxyType(
    {taxonomy.slug: taxonomy for taxonomy in (OPS, PROJECT, AGENT, KNOWLEDGE)}
)

DEFAULT_CONFIDENCE = 0.7

DEFAULT_RELEVANCE = 0.5
"""What a missing relevance score counts as when project memories are ranked: neither learned to help nor to harm."""
