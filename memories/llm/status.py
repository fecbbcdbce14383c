"""How each role stands: its model, what is missing, what it has spent, and which roles need a person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from pydantic import BaseModel

from memories.llm.calls import Answer, Unavailable, ask
from memories.llm.limits import Resting, Spent, resting, spent
from memories.llm.roles import HTTP, ROLES, Chosen, chosen
from memories.models import ModelCall

LATELY = timedelta(days=1)
INSTRUCTIONS = "You are asked to show that you can be reached. Do what the message says."
QUESTION = "Answer that you are ready: true."
TEST_SECONDS = 60.0


class Ready(BaseModel):
    """What `manage.py model test` expects."""

    ready: bool


@dataclass(frozen=True, slots=True)
class State:
    """One role at one moment. `missing` says what is not set up, "" when nothing is."""

    chosen: Chosen
    missing: str
    rest: Resting | None
    spent: Spent

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


def states(at: datetime | None = None, roles: Iterable[str] = ROLES) -> list[State]:
    """Return how each of `roles` stands at `at` (UTC; now when None), by one query and one for each model in use."""
    at = at or timezone.now()
    names = list(roles)
    figures = spent(at, names) if names else {}
    found = []
    for name in names:
        by = chosen(name)
        missing = "" if by.off else by.backend.trouble()
        found.append(State(by, missing, None if by.off or missing else resting(by, at), figures[name]))
    return found


def needed(at: datetime | None = None) -> list[str]:
    """Return the roles whose model something needs: a person switched it on, or it was asked within the last day."""
    since = (at or timezone.now()) - LATELY
    return [
        name
        for name, role in ROLES.items()
        if (role.plain == HTTP and not chosen(name).off)  # off unless a person sets a model
        or ModelCall.objects.filter(role=name, asked_at__gte=since).exists()
    ]


def troubles(at: datetime | None = None) -> list[State]:
    """Return the roles that something needs and that get no answer now."""
    return [state for state in states(at, needed(at)) if state.trouble]


def test(role: str) -> Answer[Ready] | Unavailable:
    """Ask the model of `role` for a short answer of a given shape; it counts as a call. Raises KeyError."""
    return ask(role, INSTRUCTIONS, QUESTION, Ready, seconds=max(ROLES[role].seconds, TEST_SECONDS))
