"""Take the parts of transcripts through their stages: each claimed, and finished with its output in one transaction.

A process may die between any two lines: the next one goes on behind the last finished stage. So no answer of a model
that was stored is paid for again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from claudeops.lib.lease import Lease
from claudeops.lib.locks import file_lock
from claudeops.lib.secrets import mask
from memories.errors import Conflict
from memories.models import PartState, RecordLevel, Stage, StageName, StageState, Transcript, TranscriptPart
from memories.observe import stages
from memories.observe.stages import Gone, Made, Read, Repeats, Unreadable, Wait, Work
from memories.telemetry import record

logger = logging.getLogger(__name__)

OPEN = (PartState.WAITING, PartState.UNREADABLE)
"""The states of parts that are taken up, the first ones first."""
LEASE = Lease(timedelta(minutes=15), "claimed_at", holds_start=True)
"""A stage takes less: its longest part is the observer's call, at most 3 minutes."""
ATTEMPTS = 8
REPORTED_AS = {StageName.CALL: "observe"}
"""The name of a stage in telemetry, where it is another: its call is the observer's."""
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=6)
WITHOUT_MODEL = timedelta(minutes=10)
"""The pause of a part for which no model is set up: thousands may wait, and each look costs."""


@dataclass(slots=True)
class Drained:
    """What one run over the parts that were due came to, in parts."""

    done: int = 0
    failed: int = 0
    waiting: int = 0
    unreadable: int = 0


@contextmanager
def draining(host: str) -> Iterator[bool]:
    """Yield whether this process is the one of `host` that takes parts through their stages."""
    path = Path(settings.CLAUDEOPS_DATA_DIR) / "observe.lock"
    with file_lock(path) as has_lock:
        if has_lock:  # whoever had claimed a stage on this host is gone
            Stage.objects.filter(state=StageState.RUNNING, claimed_by=host).update(
                state=StageState.WAITING, claimed_by="", claimed_at=None
            )
        yield has_lock


def drain(
    host: str,
    read: Read,
    repeats: Repeats,
    *,
    transcripts: Sequence[int] | None = None,
    seconds: float = 90.0,
    at: datetime | None = None,
    after: Callable[[TranscriptPart], object] | None = None,
) -> Drained:
    """Take the due parts of `host` (of some `transcripts`, or of all) as far as they go, for about `seconds`.

    Inside `draining(host)`. `read` gives the turns of a part, `repeats` says which of some (source, text) a statement
    repeats; `after` is called for each part. `at` (UTC; None: now, each time) is the time of claims and pauses.
    """
    outcome, ends = Drained(), time.monotonic() + seconds
    past_ids: set[int] = set()
    while time.monotonic() < ends:
        part = _next_due(host, transcripts, past_ids, at or timezone.now())
        if part is None:
            break
        past_ids.add(part.pk)
        state = advance(part, read, repeats, host=host, at=at)
        outcome.done += state == PartState.DONE
        outcome.failed += state == PartState.FAILED
        outcome.waiting += state == PartState.WAITING
        outcome.unreadable += state == PartState.UNREADABLE
        if after is not None:
            part.refresh_from_db()
            after(part)
    return outcome


def due_hosts(at: datetime | None = None) -> list[str]:
    """Return the hosts that have parts with a stage that may run now."""
    rows = (_due(at or timezone.now(), state).order_by() for state in OPEN)
    return sorted({host for due in rows for host in due.values_list("transcript__host", flat=True).distinct()})


def advance(part: TranscriptPart, read: Read, repeats: Repeats, *, host: str, at: datetime | None = None) -> PartState:
    """Take one part through its stages until one waits or fails, or all are done; return its state."""
    work = Work(part, read, repeats)
    while True:
        now = at or timezone.now()
        stage = part.stages.exclude(state=StageState.DONE).order_by("position").first()
        if stage is None:
            return PartState.DONE
        if stage.state == StageState.FAILED:
            return PartState.FAILED
        if not _claim(stage, host, now):
            return PartState.WAITING
        started = time.monotonic()
        try:
            output = stages.STAGES[StageName(stage.name)](work)
            _finish(stage, part, host, output, started, at or timezone.now())
        except Wait as waits:
            answer = waits.answer if isinstance(waits, Unreadable) else {}
            _pause(stage, host, waits.why, waits.until, at or timezone.now(), counts=waits.counts, answer=answer)
            return PartState(TranscriptPart.objects.values_list("state", flat=True).get(pk=part.pk))
        except Gone as gone:
            _fail(stage, part, host, str(gone))
            return PartState.FAILED
        except Exception as error:
            logger.exception("stage %s of %s failed", stage.name, part)
            name = type(error).__name__
            _pause(stage, host, f"{name}: {error}", None, at or timezone.now(), counts=True, error=name)
            return PartState(TranscriptPart.objects.values_list("state", flat=True).get(pk=part.pk))


class _TakenOver(Exception):
    """Another process has the stage now: nothing of this attempt may be stored."""


def _next_due(host: str, transcripts: Sequence[int] | None, past_ids: set[int], at: datetime) -> TranscriptPart | None:
    for state in OPEN:
        rows = _due(at, state).filter(transcript__host=host).exclude(pk__in=past_ids)
        if transcripts is not None:
            rows = rows.filter(transcript__in=transcripts)
        part = rows.select_related("transcript__project", "transcript__session__agent").order_by("pk").first()
        if part is not None:
            return part
    return None


def _due(at: datetime, state: PartState) -> QuerySet[TranscriptPart]:
    """Return the parts in `state` with a stage that may run. The parts of a transcript go one after the other.

    One whose answer cannot be read keeps no other waiting.
    """
    # Only the current stage of a part is ever claimed or paused: one of those blocks it.
    blocked = Stage.objects.filter(
        (Q(state=StageState.RUNNING) & ~LEASE.free(at)) | Q(state=StageState.WAITING, not_before__gt=at)
    )
    waiting = TranscriptPart.objects.filter(state=PartState.WAITING)
    earlier = waiting.filter(transcript=OuterRef("transcript"), number__lt=OuterRef("number"))
    rows = TranscriptPart.objects.filter(state=state).exclude(pk__in=blocked.values("part")).exclude(Exists(earlier))
    if state == PartState.UNREADABLE:
        rows = rows.exclude(Exists(Stage.objects.filter(part=OuterRef("pk"), state=StageState.FAILED)))
    return rows


def _claim(stage: Stage, host: str, at: datetime) -> bool:
    free = Q(state=StageState.WAITING) & (Q(not_before=None) | Q(not_before__lte=at))
    void = Q(state=StageState.RUNNING) & LEASE.free(at)
    claimed = {"state": StageState.RUNNING, "claimed_by": host, "attempts": F("attempts") + 1}
    is_mine = LEASE.renew(Stage.objects.filter(free | void, pk=stage.pk), at, **claimed)
    if is_mine:
        stage.refresh_from_db()
    return is_mine


def _mine(stage: Stage, host: str) -> QuerySet[Stage]:
    """Return the stage, if this attempt still has it."""
    return Stage.objects.filter(pk=stage.pk, state=StageState.RUNNING, claimed_by=host, claimed_at=stage.claimed_at)


def _finish(stage: Stage, part: TranscriptPart, host: str, output: Made, started: float, at: datetime) -> None:
    """Store what a stage made and mark it done, in one transaction."""
    columns = {
        "state": StageState.DONE,
        "finished_at": at,
        "duration_ms": int((time.monotonic() - started) * 1000),
        "not_before": None,
        "problem": "",
    }
    with transaction.atomic():
        if not _mine(stage, host).update(counts=output.counts, **columns):
            raise _TakenOver(f"{stage} was taken over")
        output.write(at)
        _report(stage, part, "completed", at, success=True, duration_ms=columns["duration_ms"], **output.counts)
        if output.nothing_left:
            Stage.objects.filter(part=part, state=StageState.WAITING).update(
                **{**columns, "duration_ms": 0}, counts={"skipped": output.nothing_left}
            )
        if output.nothing_left or stage.name == StageName.STORE:
            # The text was for the model alone: what is kept of it is in the segments.
            TranscriptPart.objects.filter(pk=part.pk).update(state=PartState.DONE, done_at=at, prepared="")
    part.refresh_from_db()


def _report(stage: Stage, part: TranscriptPart, outcome: str, at: datetime, **counts: Any) -> None:
    """Record an attempt at a stage, in the transaction that ends it. A wait without an attempt leaves no record."""
    name = REPORTED_AS.get(StageName(stage.name), stage.name)
    record(
        f"memory.{name}.{outcome}",
        component="observe",
        source="transcript",
        key=f"stage-{stage.pk}-{stage.claimed_at:%Y%m%dT%H%M%S.%f}",
        at=at,
        **{**counts, "transcript": part.transcript_id, "part": part.number, "attempt": stage.attempts},
    )


def _pause(
    stage: Stage,
    host: str,
    why: str,
    until: datetime | None,
    at: datetime,
    *,
    counts: bool,
    error: str = "",
    answer: Mapping[str, Any] | None = None,
) -> None:
    """Let a stage wait: until a time that is known, or longer after each attempt. `counts`: whether it may give up.

    `answer` are the columns of its part with an answer that cannot be read.
    """
    pause = min(FIRST_PAUSE * 4 ** (stage.attempts - 1), LONGEST_PAUSE) if counts else WITHOUT_MODEL
    given_up = counts and stage.attempts >= ATTEMPTS
    with transaction.atomic():
        changed = _mine(stage, host).update(
            state=StageState.FAILED if given_up else StageState.WAITING,
            not_before=until or at + pause,
            problem=mask(why)[:500],
            claimed_by="",
            claimed_at=None,
            **({} if counts else {"attempts": 0}),
        )
        if changed and (answer or given_up):
            state = PartState.UNREADABLE if answer else PartState.FAILED
            TranscriptPart.objects.filter(pk=stage.part_id).update(**(answer or {}), state=state)
        if changed and counts:
            level = RecordLevel.ERROR if given_up else RecordLevel.WARNING
            error = error or ("unreadable" if answer else "no answer")
            _report(stage, stage.part, "failed", at, success=False, level=level, error=error)


def _fail(stage: Stage, part: TranscriptPart, host: str, why: str) -> None:
    with transaction.atomic():
        if _mine(stage, host).update(state=StageState.FAILED, problem=mask(why)[:500]):
            TranscriptPart.objects.filter(pk=part.pk).update(state=PartState.FAILED)
            _report(stage, part, "failed", timezone.now(), success=False, error="Gone")


STAGES = tuple(StageName)
"""In the order in which a part goes through them."""


def add_part(transcript: Transcript, number: int, start: int, end: int, *, at: datetime) -> TranscriptPart:
    """Store a part (the bytes from `start` to `end`) that waits with all of its stages.

    Call it in the transaction that moves `observed_to`. Raises IntegrityError when there is one of this number.
    """
    part = TranscriptPart.objects.create(transcript=transcript, number=number, start=start, end=end, created_at=at)
    Stage.objects.bulk_create(Stage(part=part, name=name, position=position) for position, name in enumerate(STAGES, 1))
    return part


def send_again(part: TranscriptPart | int, *, by: str, at: datetime | None = None) -> TranscriptPart:
    """Let a part that failed, or is unreadable, wait again, from the stage that stopped. Raises Conflict for others."""
    pk = part if isinstance(part, int) else part.pk
    with transaction.atomic():
        rows = TranscriptPart.objects.filter(pk=pk, state__in=(PartState.FAILED, PartState.UNREADABLE))
        changed = rows.exclude(stages__state=StageState.RUNNING).update(state=PartState.WAITING)
        if not changed:
            raise Conflict(
                "This part has not failed; it waits, is being observed, or is done.", "Look at the transcript again."
            )
        stopped = Q(state=StageState.FAILED) | Q(state=StageState.WAITING, not_before__isnull=False)
        Stage.objects.filter(stopped, part=pk).update(
            state=StageState.WAITING,
            attempts=0,
            not_before=None,
            problem=f"sent again by {by}, {at or timezone.now():%Y-%m-%d %H:%M} UTC",
        )
    return TranscriptPart.objects.get(pk=pk)
