"""How many hits a recall returns: lean for little room, deep for what matters, auto by the query. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from memories.recall.filters import InvalidRecall
from memories.recall.query import Query

MOST = 100


@dataclass(frozen=True, slots=True)
class Profile:
    """At least `least` hits when so many are above the minimum, up to `most` while they are nearly as good as the best.

    `share`: a hit past `least` must reach this share of the best one's score. `rewrite`: whether a model may
    put the query in other words.
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
    """The profile of this name. Auto: lean for what is to be found as written, deep for a long question."""
    if name == AUTO:
        name = "lean" if query.literal else "deep" if len(query.terms) > LONG_QUESTION else "balanced"
    if name not in PROFILES:
        raise InvalidRecall(f"profile is {name!r}; allowed are {', '.join(NAMES)}.")
    return PROFILES[name]


def how_many(profile: Profile, limit: int | None, scores: list[float]) -> int:
    """How many of hits with these scores (best first) are given; `limit` has the last word."""
    if limit is not None:
        if not 1 <= limit <= MOST:
            raise InvalidRecall(f"limit is {limit}; allowed is 1 to {MOST}.")
        return limit
    if not scores:
        return 0
    good = sum(score >= profile.share * scores[0] for score in scores[: profile.most])
    return max(min(profile.least, len(scores)), good)
