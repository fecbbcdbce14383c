"""The thresholds of the gate that are in force, and their history: each change is a row with its reason."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime

from django.db.models import QuerySet

from memories.capture.thresholds import DEFAULTS, Thresholds
from memories.errors import InvalidMemory
from memories.lifecycle.lock import writing
from memories.models import GateThreshold, to_utc

NAMES = tuple(asdict(DEFAULTS))


def current() -> Thresholds:
    """Read the thresholds in force. One query: the gate's callers read them once for a transcript's part."""
    found = asdict(DEFAULTS)
    for row in history().filter(name__in=NAMES).order_by("at", "pk"):
        found[row.name] = row.value
    return Thresholds(**found)


def history() -> QuerySet[GateThreshold]:
    """Return every change, the latest first."""
    return GateThreshold.objects.all()


def apply(name: str, value: float, *, by: str, reason: str, at: datetime | None = None) -> GateThreshold | None:
    """Set a threshold from now on, with a row in the history; None when it has this value already.

    Raises InvalidMemory for an unknown name, a value outside 0..1, no reason, and for a `reference` above `allow`.
    """
    if name not in NAMES:
        raise InvalidMemory(f"There is no threshold {name!r}; there are {' and '.join(NAMES)}.")
    if not 0.0 <= value <= 1.0:
        raise InvalidMemory(f"{name} is {value}; allowed is a number from 0 to 1.")
    if not reason.strip():
        raise InvalidMemory("A reason is missing.", "Say why: it stands in the history of the thresholds.")
    with writing():
        before = current()
        after = replace(before, **{name: value})
        if after == before:
            return None
        if after.reference > after.allow:
            raise InvalidMemory(
                f"reference would be {after.reference:g}, above allow, which is {after.allow:g}.",
                "An exact reference cannot ask for more confidence than a text without one.",
            )
        return GateThreshold.objects.create(
            name=name, value=value, before=getattr(before, name), by=by[:150], reason=reason.strip(), at=to_utc(at)
        )
