"""Call a model by its role: `ask()` is the one way. Each attempt is a row; without a model the answer says why.

Budgets and rests are read from the rows of calls, so that all processes and hosts agree. Calls that run at the same
moment are not known to each other: a budget can be exceeded by as many calls as run at once.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.utils import timezone

from claudeops.lib.append import append
from claudeops.lib.secrets import mask
from memories.llm import reader
from memories.llm.backends import Failure, Reply, Request
from memories.llm.roles import ROLES, Chosen, chosen
from memories.models import CallOutcome, ModelCall

FAILURES, PAUSE = 3, timedelta(minutes=5)
"""After so many failures in a row a backend's model is not called for so long."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one role since 00:00 UTC: US dollars and calls. `budget` in US dollars, 0: no limit."""

    usd: float
    calls: int
    failures: int
    budget: float
    most_calls: int

    @property
    def left(self) -> float | None:
        """US dollars; None without a limit."""
        return max(0.0, self.budget - self.usd) if self.budget else None

    @property
    def over(self) -> str:
        """Say which limit of the day is reached; "" when none is."""
        if self.budget and self.usd >= self.budget:
            return f"${self.usd:.2f} of ${self.budget:.2f} are spent today"
        if self.most_calls and self.calls >= self.most_calls:
            return f"{self.calls:,} of {self.most_calls:,} calls are made today"
        return ""


def midnight(at: datetime) -> datetime:
    """Return 00:00 UTC of the day of `at` (aware, UTC)."""
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def spent(at: datetime, roles: Iterable[str] = ROLES) -> dict[str, Spent]:
    """Return what each of `roles` has spent since 00:00 UTC, by one query."""
    names = list(roles)
    rows = (
        ModelCall.objects.filter(role__in=names, asked_at__gte=midnight(at))
        .order_by()
        .values("role")
        .annotate(
            usd=Sum("cost_usd"),
            calls=Count("pk"),
            failures=Count("pk", filter=~Q(outcome__in=(CallOutcome.ANSWERED, CallOutcome.ASKED))),
        )
    )
    by_role = {row["role"]: (row["usd"], row["calls"], row["failures"]) for row in rows}
    budgets, most = settings.CLAUDEOPS_MODEL_DAILY_USD, settings.CLAUDEOPS_MODEL_DAILY_CALLS
    spent_by = {}
    for name in names:
        usd, calls, failures = by_role.get(name, (None, 0, 0))
        budget = budgets.get(name, budgets[""])
        spent_by[name] = Spent(float(usd or 0), calls, failures, budget, most)
    return spent_by


@dataclass(frozen=True, slots=True)
class Resting:
    """A model that is not called until `until` (UTC), and how its last call failed."""

    until: datetime
    error: str


def resting(chosen: Chosen, at: datetime) -> Resting | None:
    """Return the rest of the role's model at `at`; None when it may be called.

    Failures of all roles that use the model of the backend count; a late answer counts for its own role alone, since
    roles differ in the time they give. An unreadable answer is no failure of the backend.
    """
    ended = (
        ModelCall.objects.filter(backend=chosen.backend_name, model=chosen.model, asked_at__gt=at - timedelta(hours=1))
        .exclude(outcome=CallOutcome.ASKED)
        .exclude(Q(outcome=CallOutcome.LATE) & ~Q(role=chosen.role.name))
    )
    last = list(ended.values_list("outcome", "asked_at", "duration_ms", "error")[:FAILURES])
    if len(last) < FAILURES or any(row[0] not in (CallOutcome.FAILED, CallOutcome.LATE) for row in last):
        return None
    _, start, duration, error = last[0]
    until = start + timedelta(milliseconds=duration or 0) + PAUSE
    return Resting(until, error) if at < until else None


T = TypeVar("T")

FIRST_PAUSE, FACTOR = 1.0, 4
"""Seconds before the second attempt, and by how much each further pause is longer."""
KEPT_FOR = timedelta(days=90)
BATCH = 1_000


class Reason(StrEnum):
    """Why there is no answer. For the first four no call was made."""

    OFF = "off"
    NOT_SET_UP = "not set up"
    BUDGET = "budget"
    RESTING = "resting"
    LATE = "late"
    FAILED = "failed"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A model's answer: `value` has the expected shape, `raw` is its text where the backend gives one.

    Tokens and `cost_usd` (US dollars) are of this attempt, as its backend states them; None when it states none.
    `duration_ms` is the attempt's time. `call_id` is its row (None: it is still to be written).
    """

    value: T
    raw: str
    backend: str
    model: str
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    duration_ms: int
    prompt_hash: str
    call_id: int | None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """There is no answer. `why` says it for people; before `until` (UTC; None: any time) asking again is of no use.

    `raw` is the text of an unreadable answer.
    """

    reason: Reason
    why: str
    until: datetime | None = None
    raw: str = ""


@dataclass(slots=True)
class Used:
    """What a run has used of a model: its answered calls, with tokens and US dollars as their backend states them.

    `unread` counts what had no usable answer. `why` says why the run ended before the last piece of work, "" when it
    did not; before `until` (UTC) another run is of no use.
    """

    unread: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    why: str = ""
    until: datetime | None = None

    def count(self, answer: Answer[Any]) -> None:
        self.tokens_in += answer.tokens_in or 0
        self.tokens_out += answer.tokens_out or 0
        self.cost_usd += answer.cost_usd or 0.0


def ask(
    role: str,
    instructions: str,
    text: str,
    shape: type[T] = str,  # type: ignore[assignment]
    *,
    seconds: float | None = None,
    at: datetime | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Answer[T] | Unavailable:
    """Ask the model of `role` about `text`, and return its answer as `shape`: str, or a pydantic model of an object.

    `seconds` (the role's when None) bounds all attempts and the pauses between them. Credentials in instructions and
    text are masked before anything sees them. `at` (UTC; now when None) is the time that budget and rest are seen at.
    Never raises for what a model or a network does. Call it outside of a transaction: a call may take minutes, and its
    row must be seen at once. Raises KeyError for an unknown role.
    """
    by = chosen(role)
    if by.off:
        return Unavailable(Reason.OFF, by.off)
    if missing := by.backend.trouble():
        return Unavailable(Reason.NOT_SET_UP, missing)
    instructions, text = mask(instructions), mask(text)
    prompt_hash = hash_of(instructions, text)
    ends = time.monotonic() + (by.role.seconds if seconds is None else seconds)
    answer: Answer[T] | Unavailable | None = None
    for attempt in range(by.role.attempts):
        if attempt:
            pause = FIRST_PAUSE * FACTOR ** (attempt - 1)
            if time.monotonic() + pause >= ends:
                break
            wait(pause)
        now = at or timezone.now()
        allowed = _allowed(by, now)
        if isinstance(allowed, Unavailable):
            return answer or allowed
        request = Request(
            role=role,
            model=by.model,
            instructions=instructions,
            text=text,
            prompt_hash=prompt_hash,
            seconds=max(0.1, round(ends - time.monotonic(), 1)),
            most_tokens=by.role.most_tokens,
            schema=reader.schema_of(shape),
            most_usd=allowed.usd_left,
        )
        answer, again = _attempt(by, request, shape, now)
        if not again:
            break
    assert answer is not None  # noqa: S101  # a role has at least one attempt
    return answer


def hash_of(instructions: str, text: str) -> str:
    """Return the SHA-256 (hexadecimal) of a masked prompt; a recorded answer has its name."""
    return hashlib.sha256(f"{instructions}\n\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Allowed:
    usd_left: float | None


def _allowed(by: Chosen, at: datetime) -> _Allowed | Unavailable:
    today = spent(at, [by.role.name])[by.role.name]
    if today.over:
        return Unavailable(Reason.BUDGET, today.over, midnight(at) + timedelta(days=1))
    rest = resting(by, at)
    if rest is not None:
        why = f"the model failed several times and is not asked until {rest.until:%H:%M} UTC: {rest.error}"
        return Unavailable(Reason.RESTING, why, rest.until)
    return _Allowed(today.left)


def _attempt(by: Chosen, request: Request, shape: type[T], at: datetime) -> tuple[Answer[T] | Unavailable, bool]:
    """Make one call with its row. Return the result, and whether another attempt may give another one."""
    call = ModelCall(
        role=request.role, backend=by.backend_name, model=by.model, prompt_hash=request.prompt_hash, asked_at=at
    )
    if not by.role.answers_a_person:
        call.save(force_insert=True)
    started = time.monotonic()
    reply = None
    try:
        reply = by.backend.send(request)
        value = reader.read(shape, reply.text, reply.structured)
    except Failure as failed:
        outcome, reason = (CallOutcome.LATE, Reason.LATE) if failed.late else (CallOutcome.FAILED, Reason.FAILED)
        why = mask(str(failed))
        _ended(call, started, outcome, failed.paid, why)
        return Unavailable(reason, why), failed.again
    except reader.Unreadable as error:
        _ended(call, started, CallOutcome.UNREADABLE, reply, str(error))
        return Unavailable(Reason.UNREADABLE, str(error), raw=reply.text if reply else ""), True
    except BaseException as error:
        _ended(call, started, CallOutcome.FAILED, reply, type(error).__name__)
        raise
    duration_ms = _ended(call, started, CallOutcome.ANSWERED, reply)
    return Answer(
        value=value,
        raw=reply.text,
        backend=by.backend_name,
        model=reply.model or by.model,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        cost_usd=reply.cost_usd,
        duration_ms=duration_ms,
        prompt_hash=request.prompt_hash,
        call_id=call.pk,
    ), False


def _ended(call: ModelCall, started: float, outcome: CallOutcome, reply: Reply | None, error: str = "") -> int:
    """Complete the row of a call; return its milliseconds."""
    duration_ms = int((time.monotonic() - started) * 1000)
    figures: dict[str, Any] = {"duration_ms": duration_ms, "outcome": outcome, "error": error}
    if reply is not None:
        figures |= {"model_used": reply.model, "tokens_in": reply.tokens_in, "tokens_out": reply.tokens_out}
        figures["cost_usd"] = None if reply.cost_usd is None else round(Decimal(reply.cost_usd), 6)
    if call._state.adding:
        for name, value in figures.items():
            setattr(call, name, value)
        append(call)
    else:
        ModelCall.objects.filter(pk=call.pk).update(**figures)
    return duration_ms


def prune(at: datetime | None = None) -> int:
    """Delete the rows of calls older than 90 days, a batch at a time; return how many."""
    old = ModelCall.objects.filter(asked_at__lt=(at or timezone.now()) - KEPT_FOR).order_by("asked_at")
    total = 0
    while batch := list(old.values_list("pk", flat=True)[:BATCH]):
        total += ModelCall.objects.filter(pk__in=batch).delete()[0]
    return total
