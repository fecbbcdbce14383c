"""How each role stands: its model, what is missing, what it has spent, what waits for it, which need a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery
from django.utils import timezone
from pydantic import BaseModel

from memories.llm.calls import Answer, Resting, Spent, Unavailable, ask, resting, spent
from memories.llm.roles import ROLES, Chosen, chosen
from memories.models import (
    Disagreement,
    ModelCall,
    PartState,
    Reflection,
    ReflectionState,
    Stage,
    StageName,
    StageState,
    TranscriptPart,
)

LATELY = timedelta(days=1)
CAP = 1_000
"""So many of each are counted; beyond, there are "1,000+"."""
PART, PAIR, REFLECTION = "transcript part", "pair of memories", "reflection"
ROLE_OF_STAGE = {StageName.PREPARE: "observer", StageName.CALL: "observer", StageName.CLASSIFY: "classifier"}
INSTRUCTIONS = "You are asked to show that you can be reached. Do what the message says."
QUESTION = "Answer that you are ready: true."
TEST_SECONDS = 60.0


class Ready(BaseModel):
    """What `manage.py model test` expects."""

    ready: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for the model of a role: `count` (at most CAP) of `what` (one of them), the oldest `since` (UTC)."""

    what: str
    count: int
    since: datetime

    @property
    def text(self) -> str:
        """For people: "12 transcript parts", "1,000+ pairs of memories"."""
        one, _, more = self.what.partition(" ")
        many = f"{one}s {more}".strip() if more.startswith("of ") else f"{self.what}s"
        return f"{self.count:,}{'+' if self.count >= CAP else ''} {self.what if self.count == 1 else many}"


@dataclass(frozen=True, slots=True)
class State:
    """One role at one moment. `missing` says what is not set up, "" when nothing is."""

    chosen: Chosen
    missing: str
    rest: Resting | None
    spent: Spent
    waiting: Waiting | None = None

    @property
    def word(self) -> str:
        """off, not set up, resting, over budget or ready."""
        if self.chosen.off:
            return "off"
        if self.missing:
            return "not set up"
        if self.rest is not None:
            return "resting"
        return "over budget" if self.spent.over else "ready"

    @property
    def trouble(self) -> str:
        """Say why the role gets no answer now; "" when it would be asked."""
        if self.chosen.off or self.missing:
            return self.chosen.off or self.missing
        if self.rest is not None:
            return f"failed several times and is not asked until {self.rest.until:%H:%M} UTC: {self.rest.error}"
        return self.spent.over


def states(
    at: datetime | None = None, roles: Iterable[str] = ROLES, waits: Mapping[str, Waiting] | None = None
) -> list[State]:
    """Return how each of `roles` stands at `at` (UTC; now when None), by one query and one for each model in use.

    `waits` is the backlog; it is read (three queries) when None.
    """
    at = at or timezone.now()
    names = list(roles)
    figures = spent(at, names) if names else {}
    waits = backlog() if waits is None else waits
    rows = []
    for name in names:
        by = chosen(name)
        missing = "" if by.off else by.backend.trouble()
        rest = None if by.off or missing else resting(by, at)
        rows.append(State(by, missing, rest, figures[name], waits.get(name)))
    return rows


def backlog() -> dict[str, Waiting]:
    """Return what waits for a model, by role, by three queries. Of more than CAP of a kind the oldest are counted.

    A part of a transcript waits for the role of its first stage that is not done.
    """
    current = Stage.objects.filter(part=OuterRef("pk")).exclude(state=StageState.DONE).order_by("position")
    parts = TranscriptPart.objects.filter(state=PartState.WAITING).order_by("pk")
    by_role: dict[str, Waiting] = {}
    for at, stage in parts.values_list("created_at", Subquery(current.values("name")[:1]))[:CAP]:
        if role := ROLE_OF_STAGE.get(stage):
            first = by_role.get(role)
            by_role[role] = Waiting(PART, first.count + 1 if first else 1, min(at, first.since) if first else at)
    pairs = Disagreement.objects.unjudged().order_by("pk").values_list("created_at", flat=True)[:CAP]
    if not chosen("judge").off and (since := list(pairs)):  # without a judge a person decides
        by_role["judge"] = Waiting(PAIR, len(since), min(since))
    rows = Reflection.objects.filter(state=ReflectionState.ASKED).order_by("pk").values_list("created_at", flat=True)
    if since := list(rows[:CAP]):
        by_role["reflector"] = Waiting(REFLECTION, len(since), min(since))
    return by_role


def needed(at: datetime | None = None, waits: Iterable[str] | None = None) -> list[str]:
    """Return the roles whose model something needs: a person switched it on, it was asked within a day, or work waits.

    `waits` are the roles that work waits for; they are read when None.
    """
    since = (at or timezone.now()) - LATELY
    recent = set(ModelCall.objects.filter(asked_at__gte=since).order_by().values_list("role", flat=True).distinct())
    wanted = recent | set(backlog() if waits is None else waits)
    # The judge and the rewriter are off unless a person sets a model.
    return [name for name, role in ROLES.items() if name in wanted or (role.optional and not chosen(name).off)]


def of_needed(at: datetime | None = None) -> list[State]:
    """Return how the roles stand that something needs."""
    waits = backlog()
    return states(at, needed(at, waits), waits)


def troubles(at: datetime | None = None) -> list[State]:
    """Return the roles that something needs and that get no answer now."""
    return [state for state in of_needed(at) if state.trouble]


def test(role: str) -> Answer[Ready] | Unavailable:
    """Ask the model of `role` for a short answer of a given shape; it counts as a call. Raises KeyError."""
    return ask(role, INSTRUCTIONS, QUESTION, Ready, seconds=max(ROLES[role].seconds, TEST_SECONDS))
