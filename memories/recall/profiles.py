"""Profiles: how many hits a recall returns, or auto by the query. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from memories.recall.filters import InvalidRecall
from memories.recall.query import Query

MOST = 100


@dataclass(frozen=True, slots=True)
class Profile:
    """`least` hits, up to `most` while each reaches `share` of the best score.

    `rewrite`: whether a query may be rewritten.
    """

    name: str
    least: int
    most: int
    share: float
    rewrite: bool


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("lean", 2, 3, 0.60, rewrite=False),
        Profile("balanced", 5, 7, 0.50, rewrite=True),
        Profile("deep", 10, 15, 0.40, rewrite=True),
    )
}
AUTO = "auto"
NAMES = (*PROFILES, AUTO)
LONG_QUESTION = 8
"""Terms from which a question asks for more than one thing."""


def chosen(name: str, query: Query) -> Profile:
    """Return the profile of this name. Auto: lean for literal queries, deep for long questions."""
    if name == AUTO:
        name = "lean" if query.literal else "deep" if len(query.terms) > LONG_QUESTION else "balanced"
    if name not in PROFILES:
        raise InvalidRecall(f"profile is {name!r}; allowed are {', '.join(NAMES)}.")
    return PROFILES[name]


def how_many(profile: Profile, limit: int | None, scores: list[float]) -> int:
    """Return how many hits with these scores (best first) to return; `limit` overrides the profile."""
    if limit is not None:
        if not 1 <= limit <= MOST:
            raise InvalidRecall(f"limit is {limit}; allowed is 1 to {MOST}.")
        return limit
    if not scores:
        return 0
    good = sum(score >= profile.share * scores[0] for score in scores[: profile.most])
    return max(min(profile.least, len(scores)), good)
