"""Health of workers and queues, with the recommended action, for the overview and `doctor`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from django.core.cache import cache
from django.db import connection
from django.utils import timezone

from claudeops.features.backups import folder as backups
from claudeops.lib import outage
from claudeops.workers import schedules
from memories.files import trouble
from memories.llm import status as models
from memories.models import JournalEntry, JournalFile
from sessions_app.checks import clusters
from sessions_app.models import Session, Status, Trigger, WorkerHeartbeat
from sessions_app.queue import tasks
from sessions_app.queue.dispatch import HOST_ALIVE
from sessions_app.queue.tasks import Depth
from sessions_app.reaper import unfollowed
from sessions_app.transcripts import status as transcripts
from sessions_app.transcripts.status import Folder, Seen

STEPS = (20, 40, 60)
"""Steps in which the age of a heartbeat is shown (seconds); a healthy worker stays in the first."""
LATELY = timedelta(days=1)
WELL, WELL_SECONDS = "workers-are-well", 15
"""Cache key, and how long (seconds) every page uses the same look."""
MOST = 1000
"""Most sessions that are counted."""
MOST_FILES = 100
MENDS = 3
"""The tier whose sessions change something."""
LONG = timedelta(hours=1)
"""What waits longer than this for a model that gives no answer now needs a person."""

START = "Start `manage.py runworker` (or `up`)."
GONE = "It was killed, or its host is down. Other workers take over its sessions."
STUCK = "Its workers are stuck or missing. Restart `manage.py runworker`."
REAP = "The reaper closes or resumes them within two minutes; `manage.py session reap` does it now."
OVERDUE = "No worker serves the queue default. Start `manage.py runworker`."
BACKUP = "Workers make the one of today within an hour; `manage.py backup` makes one now."
TRANSCRIPTS = "`manage.py doctor` says more; what was observed stays."
FILES = "`manage.py doctor` says what to do about each."
MODELS = "`manage.py model status` says more. What waits is caught up when the model answers again."
VERIFY = "`manage.py slog verify` names them; they stay in their file."
SILENT = "Their prompt asks for it: see what they changed, and write it down by `manage.py slog write`."
FAILED = "See the failed tasks; `manage.py doctor` reports other problems."


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem and the recommended action. Text between backquotes is a command."""

    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process. Its last heartbeat is at most `within` seconds old (a step of STEPS); None when it is silent.

    `beat_at` (UTC) is set only for a silent worker: that of a living one would change every time.
    """

    pk: int
    host: str
    pid: int
    within: int | None
    beat_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: its workers, its waiting tasks, since when the oldest waits (UTC), and the failures of the last day."""

    name: str
    workers: tuple[Worker, ...]
    silent: tuple[Worker, ...]
    waiting: int
    since: datetime | None
    late: bool
    failures: int
    places: int = 0
    """How many of its tasks may run at once: those of each of its workers, by this host's settings."""

    @property
    def troubles(self) -> list[Trouble]:
        problems = []
        if not self.workers:
            problems.append(Trouble("No worker serves this queue.", START))
        elif self.late:
            problems.append(Trouble("Its tasks have waited too long.", STUCK))
        for host, pids in groupby(self.silent, lambda worker: worker.host):
            gone = [worker.pid for worker in pids]
            who = f"pid {gone[0]}" if len(gone) == 1 else f"{len(gone)} processes"
            problems.append(Trouble(f"{host} ({who}) has stopped sending heartbeats.", GONE))
        if self.failures:
            subject = "One task has" if self.failures == 1 else f"{self.failures:,} tasks have"
            problems.append(Trouble(f"{subject} failed in the last 24 hours.", FAILED))
        return problems


@dataclass(frozen=True, slots=True)
class Model:
    """A role that something needs: its model, how it stands, what waits for it.

    `state` is a word of `memories.llm.status.State`, `trouble` why it gets no answer now ("" when it would): the last
    error while it rests until `rests_until`. `waiting` is text such as "12 transcript parts", the oldest `since` then.
    Times are UTC; `left` is the rest of its budget of the day ("$1.20"), "" without a limit. `late`: it has waited for
    LONG.
    """

    role: str
    name: str
    state: str
    trouble: str
    waiting: str
    since: datetime | None
    rests_until: datetime | None
    left: str
    late: bool


@dataclass(frozen=True, slots=True)
class Health:
    """The queues, in the order of the settings, and other problems.

    `database` is the engine's name, `orphaned` counts running sessions without a worker, `overdue` late schedules.
    `backup` is when the last backup was made (UTC); it is late when one is made each day and the last is too old.
    """

    database: str
    queues: tuple[Queue, ...]
    orphaned: int
    overdue: tuple[str, ...]
    backup: datetime | None
    backup_is_late: bool
    files: tuple[str, ...] = ()
    """What is wrong with agent files, a sentence for each."""
    models: tuple[Model, ...] = ()
    """The roles of models that something needs."""
    transcripts: Seen = field(default_factory=Seen)
    folders: tuple[Folder, ...] = ()
    """The folders of transcripts that are swept."""
    journal: tuple[str, ...] = ()
    """What is wrong with files of the journal."""
    silent: int = 0
    """Sessions of the last day that may have changed something, where no agent wrote to the journal."""
    full_disk: str = ""

    @property
    def troubles(self) -> list[Trouble]:
        problems = [Trouble(self.full_disk, outage.MAKE_ROOM)] if self.full_disk else []
        if self.orphaned:
            sessions = "one running session" if self.orphaned == 1 else f"{self.orphaned} running sessions"
            problems.append(Trouble(f"No worker follows {sessions}.", REAP))
        if self.overdue:
            problems.append(Trouble(f"Overdue for more than five minutes: {', '.join(self.overdue)}.", OVERDUE))
        if self.backup_is_late:
            text = "The last backup is older than two days." if self.backup else "There is no backup yet."
            problems.append(Trouble(text, BACKUP))
        if self.files:
            others = len(self.files) - 1
            more = "another file needs" if others == 1 else f"{others} other files need"
            problems.append(Trouble(f"{self.files[0]}{f'; {more} a person, too' if others else ''}.", FILES))
        late: dict[str, list[str]] = defaultdict(list)
        for model in self.models:
            if model.late:
                late[model.trouble].append(model.role)
        for why, roles in late.items():
            who = f"model of the role {roles[0]} gives" if len(roles) == 1 else f"models of {', '.join(roles)} give"
            problems.append(Trouble(f"The {who} no answer, and work waits: {why[:200]}.", MODELS))
        for folder in self.folders:
            if folder.problem:
                problems.append(Trouble(f"Transcripts in {folder}: {folder.problem[:200]}", TRANSCRIPTS))
        problems += [Trouble(f"{text}.", VERIFY) for text in self.journal]
        if self.silent:
            many = "One session that mends ended" if self.silent == 1 else f"{self.silent} sessions that mend ended"
            problems.append(Trouble(f"{many} in the last day, and no agent wrote to the journal.", SILENT))
        if self.transcripts.problems:
            number = self.transcripts.problems
            some = "one transcript" if number == 1 else f"{number} transcripts"
            problems.append(
                Trouble(f"{some.capitalize()} of the last day cannot be observed any further.", TRANSCRIPTS)
            )
        return problems

    @property
    def places(self) -> int:
        """How many sessions may run at once."""
        return sum(queue.places for queue in self.queues if queue.name == tasks.SESSIONS)

    @property
    def ok(self) -> bool:
        return not self.troubles and not any(queue.troubles for queue in self.queues)


def is_alive(beat: WorkerHeartbeat, at: datetime) -> bool:
    return beat.beat_at >= at - HOST_ALIVE


def is_late(depth: Depth, at: datetime) -> bool:
    """Whether tasks wait too long. Tasks that start sessions may wait, since sessions take long."""
    return depth.since < at - schedules.LATE and depth.queue != tasks.SESSIONS


def is_well() -> bool:
    """Return whether nothing needs attention, as of at most WELL_SECONDS ago: every page says so."""
    return bool(cache.get_or_set(WELL, lambda: read().ok, WELL_SECONDS))


def read(at: datetime | None = None) -> Health:
    """Read the health at `at` (UTC; now when None) with a dozen queries, and one for each model that may rest."""
    at = at or timezone.now()
    workers: dict[str, list[Worker]] = defaultdict(list)
    for beat in WorkerHeartbeat.objects.order_by("host", "pid"):
        workers[beat.cluster].append(_worker(beat, at))
    depths: dict[str, list[Depth]] = defaultdict(list)
    for depth in tasks.depths(at):
        depths[tasks.queue_of(depth.queue)].append(depth)
    failures = tasks.failures(at - LATELY)
    backup = backups.last_made(at)
    return Health(
        database=connection.display_name,
        queues=tuple(
            _queue(name, conf, workers[name], depths[name], failures.get(name, 0), at) for name, conf in clusters()
        ),
        orphaned=Session.objects.filter(unfollowed(at))[:MOST].count(),
        overdue=tuple(schedules.late(at)),
        backup=backup,
        backup_is_late=backups.is_daily_on() and backups.is_late(backup, at),
        files=tuple(file.text for file in trouble.troubled(MOST_FILES)),
        models=tuple(_model(state, at) for state in models.of_needed(at)),
        transcripts=transcripts.seen(at),
        folders=tuple(transcripts.folders()),
        full_disk=outage.full_disk(),
        journal=tuple(f"{file}: {file.problem}" for file in JournalFile.objects.exclude(problem="")),
        silent=_silent(at),
    )


def _silent(at: datetime) -> int:
    """Return how many sessions that may change something ended in the last day, where no agent wrote to the journal."""
    ended = Session.objects.filter(tier=MENDS, dry_run=False, status=Status.COMPLETED, ended_at__gte=at - LATELY)
    count = ended.exclude(trigger=Trigger.IMPORT)[:MOST].count()
    written = JournalEntry.objects.filter(at__gte=at - LATELY).exclude(agent="")
    return 0 if count and written.exists() else count


def _model(state: models.State, at: datetime) -> Model:
    waiting, remaining = state.waiting, state.spent.left
    return Model(
        role=state.chosen.role.name,
        name=f"{state.chosen.backend_name}:{state.chosen.model}" if state.chosen.model else "",
        state=state.word,
        trouble=state.rest.error if state.rest else state.trouble,
        waiting=waiting.text if waiting else "",
        since=waiting.since if waiting else None,
        rests_until=state.rest.until if state.rest else None,
        left="" if remaining is None else f"${remaining:.2f}",
        late=bool(state.trouble and waiting and waiting.since < at - LONG),
    )


def _worker(beat: WorkerHeartbeat, at: datetime) -> Worker:
    if not is_alive(beat, at):
        return Worker(beat.pk, beat.host, beat.pid, None, beat.beat_at)
    seconds = (at - beat.beat_at).total_seconds()
    return Worker(beat.pk, beat.host, beat.pid, next(step for step in STEPS if seconds <= step))


def _queue(
    name: str, conf: Mapping[str, Any], workers: list[Worker], depths: list[Depth], failures: int, at: datetime
) -> Queue:
    living = tuple(worker for worker in workers if worker.within is not None)
    return Queue(
        name=name,
        workers=living,
        silent=tuple(worker for worker in workers if worker.within is None),
        waiting=sum(depth.waiting for depth in depths),
        since=min((depth.since for depth in depths), default=None),
        late=any(is_late(depth, at) for depth in depths),
        failures=failures,
        places=len(living) * int(conf["workers"]),
    )
