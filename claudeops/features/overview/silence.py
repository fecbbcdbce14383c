"""Silence as an alarm: what should have happened and did not, since when, and what to do about it.

Nothing here is an alarm on an installation where nothing ever ran, or where a person stopped the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db.models import Count, Min, Q
from django.urls import reverse
from django.utils import timezone
from django_q.models import Schedule

from claudeops.features.overview import health
from claudeops.workers import schedules
from memories.curate.status import Waiting, stages
from memories.llm import status as models
from memories.llm.roles import chosen
from memories.llm.status import State
from memories.models import (
    CallOutcome,
    MaintenanceRun,
    MemoryFile,
    ModelCall,
    PartState,
    RunState,
    StageName,
    StageState,
    TelemetryRecord,
    Transcript,
    TranscriptPart,
)
from sessions_app.checks import clusters
from sessions_app.models import Ending, Session, Trigger, WorkerHeartbeat, WorkerRun
from sessions_app.queue.dispatch import HOST_ALIVE, day_of, spent_on
from sessions_app.queue.tasks import queue_of

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
SETTLED = 2 * HOUR
"""What ended less than this ago may still be on its way."""
ENOUGH = 3
"""Sessions of a day of which none is taken in, or transcripts of which none is observed."""
GROWING = 20
"""Fewer parts that wait are no backlog."""
LOOKED_BACK = 6 * HOUR
"""The time in which more came than was done."""
CALLS, SHARE = 10, 0.2
"""Of so many answers in a day so many may be unreadable."""
LATEST_CALLS = 5_000
STUCK = 3 * HOUR
"""What the curation of memories leaves waiting longer than this does not go on by itself."""
NIGHTS = timedelta(hours=50)
"""Without a nightly run for this long, two nights were left out."""
KEY, SECONDS = "silence", 30
PERSON = "triage: person"
"""The stage in which proposals wait for a person, as they may."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that has gone quiet. `name` tells it apart; text between backquotes in `advice` is a command.

    `since` is UTC, None when it is not known; `is_urgent`: a person is needed now. `url` is the page to look at, "" for
    none.
    """

    name: str
    text: str
    advice: str
    since: datetime | None = None
    is_urgent: bool = False
    url: str = ""


def alarms() -> tuple[Alarm, ...]:
    """Return the alarms as of at most SECONDS ago."""
    current: tuple[Alarm, ...] | None = cache.get(KEY)
    if current is None:
        current = read()
        cache.set(KEY, current, SECONDS)
    return current


def read(at: datetime | None = None) -> tuple[Alarm, ...]:
    """Read the alarms at `at` (UTC; now when None), the urgent ones first, by a number of queries that is bounded."""
    at = at or timezone.now()
    needed = models.of_needed(at)
    all_alarms = [
        *_workers(at),
        *_schedules(at),
        *_files(at),
        *_observing(at, needed),
        *_unreadable_parts(),
        *_backlog(at),
        *_curating(at),
        *_maintenance(at),
        *_unreadable(at),
        *_budgets(at, needed),
    ]
    return tuple(sorted(all_alarms, key=lambda alarm: not alarm.is_urgent))


def _living(at: datetime) -> set[str]:
    beats = WorkerHeartbeat.objects.filter(beat_at__gte=at - HOST_ALIVE)
    return {queue_of(cluster) for cluster in beats.values_list("cluster", flat=True)}


def _workers(at: datetime) -> Iterator[Alarm]:
    """Queues that nobody serves, unless no worker ever ran or the last one was stopped."""
    living = _living(at)
    last = WorkerRun.objects.order_by("-started_at", "-pk").first()
    if last is None or (last.ending == Ending.STOPPED and not living):
        return
    for name, _ in clusters():
        if name not in living:
            beat = WorkerHeartbeat.objects.filter(cluster=name).order_by("-beat_at").first()
            since = beat.beat_at if beat else last.ended_at
            text = f"No worker serves the queue {name}."
            yield Alarm(f"worker {name}", text, health.START, since, True, f"{reverse('overview')}#health")


def _schedules(at: datetime) -> Iterator[Alarm]:
    """Schedules that did not fire though a worker serves their queue."""
    late = schedules.late(at)
    if not late or "default" not in _living(at):
        return
    since = Schedule.objects.filter(name__in=[schedules.PREFIX + name for name in late]).aggregate(
        first=Min("next_run")
    )["first"]
    names = ", ".join(late)
    text = f"{'The schedule' if len(late) == 1 else 'The schedules'} {names} did not fire."
    urgent = since is not None and since < at - HOUR
    yield Alarm("schedules", text, health.STUCK, since, urgent, f"{reverse('overview')}#health")


def _files(at: datetime) -> Iterator[Alarm]:
    for file in MemoryFile.objects.exclude(problem="").select_related("project"):
        text = f"{file} cannot be used: {file.problem[:200]}"
        advice = "Put it right in its repository on that host; `manage.py doctor` says more."
        yield Alarm(f"file {file.pk}", text, advice, file.problem_since, True)


def _observing(at: datetime, needed: list[State]) -> Iterator[Alarm]:
    """Sessions that ended of which none was taken in, and transcripts of which none was observed."""
    if not settings.CLAUDEOPS_OBSERVE:
        return
    earlier = TelemetryRecord.objects.order_by("at").values_list("at", flat=True).first()
    if earlier is None or earlier > at - DAY:
        return  # what happened before nobody wrote down
    within = {"ended_at__gte": at - DAY, "ended_at__lte": at - SETTLED}
    ended = Session.objects.filter(**within).exclude(trigger=Trigger.IMPORT).exclude(project__observed=False)
    number = ended.order_by()[:1000].count()
    if number >= ENOUGH and not Transcript.objects.filter(seen_at__gte=at - DAY).exists():
        text = f"None of the {number} sessions that ended in the last day was taken in to be observed."
        advice = "See the failed tasks of the workers; `manage.py observe` takes a session in by hand."
        since = Transcript.objects.order_by("-seen_at").values_list("seen_at", flat=True).first()
        yield Alarm("transcripts", text, advice, since, True, reverse("transcripts"))
    if chosen("observer").off or any(one.trouble for one in needed if one.chosen.role.name == "observer"):
        return  # its model has its own alarm
    transcripts = Transcript.objects.filter(seen_at__gte=at - DAY, seen_at__lte=at - SETTLED)
    waiting = TranscriptPart.objects.filter(state=PartState.WAITING, transcript__in=transcripts)[:1000].count()
    records = TelemetryRecord.objects.filter(component="observe", at__gte=at - DAY)
    if waiting >= ENOUGH and not records.exists():
        last = TelemetryRecord.objects.filter(component="observe").order_by("-at").values_list("at", flat=True).first()
        text = f"{waiting} parts of transcripts wait and no stage of observing has done anything for a day."
        yield Alarm("observing", text, health.STUCK, last, True, f"{reverse('transcripts')}?state=waiting")


def _unreadable_parts() -> Iterator[Alarm]:
    """Parts of transcripts about which the observer's answer could not be read: nothing of them is remembered."""
    rows = TranscriptPart.objects.filter(state=PartState.UNREADABLE)
    given_up = Count("pk", filter=Q(stages__name=StageName.CALL, stages__state=StageState.FAILED))
    totals = rows.aggregate(number=Count("pk", distinct=True), given_up=given_up, since=Min("created_at"))
    if number := totals["number"]:
        some = "One part of a transcript" if number == 1 else f"{number:,} parts of transcripts"
        text = f"{some} cannot be observed: the observer's answer could not be read."
        again = f"{number - totals['given_up']:,} will be tried again by itself, {totals['given_up']:,} will not."
        advice = f"{again} Observe again on the page of the transcript, or `manage.py observe FILE`, tries it now."
        where = f"{reverse('transcripts')}?state=unreadable"
        yield Alarm("unreadable", text, advice, totals["since"], False, where)


def _backlog(at: datetime) -> Iterator[Alarm]:
    """Parts of transcripts of which more came than were done."""
    rows = TranscriptPart.objects.filter(state=PartState.WAITING)
    waiting = rows.aggregate(
        number=Count("pk"), since=Min("created_at"), came=Count("pk", filter=Q(created_at__gte=at - LOOKED_BACK))
    )
    if waiting["number"] < GROWING or waiting["since"] > at - LOOKED_BACK:
        return
    completions = TelemetryRecord.objects.filter(action="memory.parse.completed", at__gte=at - LOOKED_BACK).count()
    if waiting["came"] > completions:
        text = (
            f"The backlog of transcripts grows: {waiting['number']:,} parts wait, {waiting['came']:,} came and "
            f"{completions:,} were observed in the last {LOOKED_BACK // HOUR} hours."
        )
        advice = "`manage.py model status` says what holds the observer; `CLAUDEOPS_WORKERS` is how many tasks run."
        yield Alarm("backlog", text, advice, waiting["since"], False, f"{reverse('transcripts')}?state=waiting")


def _curating(at: datetime) -> Iterator[Alarm]:
    """Stages between observations and MEMORY.md in which something waits for long, though nothing holds it."""
    for stage in stages(looks_ahead=False):
        if stage.name in (PERSON, "maintain") or stage.problem or not _is_stuck(stage.waiting, at):
            continue
        text = f"{stage.waiting.count:,} {stage.what} wait in the stage {stage.name}."
        advice = f"`manage.py curate status` says more; `manage.py curate {stage.name.partition(':')[0]}` runs it now."
        yield Alarm(stage.name, text, advice, stage.waiting.since)


def _is_stuck(waiting: Waiting, at: datetime) -> bool:
    return bool(waiting.count and waiting.since and waiting.since < at - STUCK)


def _maintenance(at: datetime) -> Iterator[Alarm]:
    last = MaintenanceRun.objects.exclude(night=None).order_by("-at").first()
    advice = "`manage.py curate maintain` runs it now."
    if last is None:
        return
    if last.state == RunState.FAILED:
        yield Alarm("maintenance", f"The last nightly maintenance failed: {last.problem[:200]}", advice, last.at)
    elif last.at < at - NIGHTS and "default" in _living(at):
        yield Alarm("maintenance", "The nightly maintenance was left out.", advice, last.at)


def _unreadable(at: datetime) -> Iterator[Alarm]:
    """Roles whose model gives more unreadable answers than may be."""
    counted: dict[str, list[datetime | None]] = {}
    rows = ModelCall.objects.filter(
        asked_at__gte=at - DAY, outcome__in=(CallOutcome.ANSWERED, CallOutcome.UNREADABLE)
    ).order_by("-asked_at")
    for role, outcome, asked_at in rows.values_list("role", "outcome", "asked_at")[:LATEST_CALLS]:
        counted.setdefault(role, []).append(asked_at if outcome == CallOutcome.UNREADABLE else None)
    for role, answers in sorted(counted.items()):
        bad = [one for one in answers if one is not None]
        if len(answers) >= CALLS and len(bad) > SHARE * len(answers):
            text = f"{len(bad)} of {len(answers)} answers of the {role} could not be read in the last day."
            advice = (
                f"`manage.py model test {role}` tries it; another model is set by `CLAUDEOPS_MODEL_{role.upper()}`."
            )
            yield Alarm(f"answers {role}", text, advice, min(bad))


def _budgets(at: datetime, needed: list[State]) -> Iterator[Alarm]:
    """Budgets of the day that are used up while something waits for them."""
    for one in needed:
        if one.spent.over and one.waiting:
            text = f"The {one.chosen.role.name} asks no more today: {one.spent.over}; {one.waiting.text} waiting."
            advice = "It goes on at 00:00 UTC; `CLAUDEOPS_MODEL_DAILY_USD` raises it."
            yield Alarm(f"budget {one.chosen.role.name}", text, advice, one.waiting.since)
    limit = settings.CLAUDEOPS_DAILY_BUDGET_USD
    held = Session.objects.queued().order_by("queued_at").values_list("queued_at", flat=True)
    if limit and spent_on(at) >= limit and (since := held.first()):
        text = f"The budget of the day (${limit:.2f}) is spent, and scheduled sessions wait."
        advice = "They go on at 00:00 UTC; `CLAUDEOPS_DAILY_BUDGET_USD` raises it."
        yield Alarm("budget", text, advice, max(since, day_of(at)), False, f"{reverse('sessions')}?status=queued")
