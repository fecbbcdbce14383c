"""The findings of `manage.py doctor`, each with what to do."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import django
from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection
from django.db.models import Count, Min
from django.utils import timezone

from claudeops import __version__
from claudeops.features.backups import folder as backups
from claudeops.features.overview import health, silence
from claudeops.features.secret_scan import last_scan
from claudeops.lib import database_version, outage, sqlite_damage
from claudeops.lib.domain_error import DomainError
from claudeops.lib.humanize import exact, size
from claudeops.lib.tracked_file import git
from claudeops.lib.tracked_file.git import GitError
from claudeops.workers import schedules
from memories.curate.document import MOST, WARN_AT
from memories.embedding import state
from memories.files import trouble, watch
from memories.library.decisions import folder as decisions
from memories.llm import status as models
from memories.models import AgentFile, MemoryFile, Project, Proposal, ProposalState, trust
from memories.queries import numbers
from memories.recall import binary_index, pgvector
from sessions_app.checks import cli_messages, clusters
from sessions_app.models import Agent, Purge, PurgeState, ScheduleKind, Session, WorkerHeartbeat
from sessions_app.queue import living_hosts, tasks, waiting
from sessions_app.queue.dispatch import reserved, spent_on
from sessions_app.reaper import unfollowed
from sessions_app.schedule import cron_error
from sessions_app.transcripts import status as transcripts

OK, WARNING, ERROR = "ok", "warning", "error"
LITTLE_SPACE = 1024**3
CLI_ANSWERS_WITHIN = 15
"""Seconds."""
CHECK_SECONDS = 20.0
"""Time for SQLite's quick check: enough for some 6 GB."""
MOST_REASONS = 5
MOST_FILES = 10
MOST_MINUTES = timedelta(minutes=10)
"""How long an approved proposal may wait for its commit, which is made within a minute."""
MEND_FILE = "Mend it, then: manage.py memory-file sync. The proposals in the inbox remove entries."
WAITS = "An idle worker takes a session within a minute; docs/operating.md says what ends each reason to wait."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked. `level` is ok, warning or error; `hint` says what to do."""

    level: str
    subject: str
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    versions: dict[str, str]
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return all(finding.level != ERROR for finding in self.findings)


def examine(at: datetime | None = None) -> Diagnosis:
    """Check everything at `at` (UTC; now when None). Without a database, checks that need it are left out."""
    at = at or timezone.now()
    findings = list(_checks())
    if not any(finding.subject == "claudeops.E001" for finding in findings):
        findings.extend(_data_folder())
        findings.append(_secrets())
        findings.append(_backup(at))
    database, usable = _database()
    findings.append(database)
    if usable:
        checked = (
            *(_workers, _queue, _sessions, _agents, _schedules, _trust, _agent_files, _memory_files, _decisions),
            *(_semantic_search, _models, _transcripts, _purges, _silence),
        )
        for check in checked:
            findings.extend(check(at))
    return Diagnosis(_versions(), tuple(findings))


def _versions() -> dict[str, str]:
    return {
        "claudeops": __version__,
        "python": platform.python_version(),
        "django": django.get_version(),
        **_engine(),
        "claude": _cli_version(),
    }


def _engine() -> dict[str, str]:
    if connection.vendor == "sqlite":
        return {"sqlite": sqlite3.sqlite_version}
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version")
            return {"postgresql": str(cursor.fetchone()[0])}
    except DatabaseError:
        return {"postgresql": "does not answer"}


def _cli_version() -> str:
    binary = shutil.which(settings.CLAUDEOPS_CLAUDE_BIN)
    if binary is None:
        return "not found"
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": settings.CLAUDEOPS_CLAUDE_HOME}
    try:
        run = subprocess.run(
            [binary, "--version"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CLI_ANSWERS_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return f"does not answer ({binary})"
    lines = run.stdout.strip().splitlines()
    return f"{lines[0].split()[0]} ({binary})" if run.returncode == 0 and lines else f"does not answer ({binary})"


def _checks() -> Iterator[Finding]:
    # Without the checks of databases: one that does not answer would raise here. `_database` checks it.
    messages = [message for message in checks.run_checks() if not message.is_silenced()]
    for message in sorted([*messages, *cli_messages()], key=lambda message: (-message.level, str(message.id))):
        level = ERROR if message.level >= checks.ERROR else WARNING
        yield Finding(level, str(message.id), str(message.msg), str(message.hint or ""))
    if not messages:
        yield Finding(OK, "checks", "no problem with the settings")


def _data_folder() -> Iterator[Finding]:
    folder = Path(settings.CLAUDEOPS_DATA_DIR)
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(nearest).free
    text = f"{folder}, {size(free)} free"
    if full := outage.full_disk():
        yield Finding(ERROR, "data folder", full, outage.MAKE_ROOM)
    elif free < LITTLE_SPACE:
        yield Finding(WARNING, "data folder", text, "Raw logs and the database grow here. Free space or move it.")
    else:
        yield Finding(OK, "data folder", text)


def _secrets() -> Finding:
    scanned = last_scan()
    if scanned is None:
        return Finding(OK, "secrets", "never scanned; `manage.py secrets scan` counts credentials in what is stored")
    text = f"last scanned {scanned.at:%Y-%m-%d %H:%M} UTC: {scanned.found:,} credentials found, {scanned.left:,} left"
    hint = "Run `manage.py secrets scan --mask`." if scanned.left else ""
    return Finding(WARNING if scanned.left else OK, "secrets", text, hint)


def _backup(at: datetime) -> Finding:
    last_backup, daily = backups.last_made(at), backups.is_daily_on()
    where = backups.backups_folder()
    if last_backup is None:
        text = f"none in {where}"
    else:
        text = f"the last one was made {_ago(last_backup, at)} ago ({last_backup:%Y-%m-%d %H:%M} UTC) in {where}"
    late = daily and backups.is_late(last_backup, at)
    hint = health.BACKUP if late else "" if daily else "None is made by itself; `manage.py backup` makes one."
    return Finding(WARNING if late else OK, "backup", text, hint)


def _database() -> tuple[Finding, bool]:
    """Return the finding, and whether the tables can be read."""
    name = str(connection.settings_dict["NAME"])
    path = sqlite_damage.file()
    checked = sqlite_damage.quick_check(path, CHECK_SECONDS) if path and path.is_file() else None
    if checked and checked.state == sqlite_damage.DAMAGED:
        return Finding(ERROR, "database", sqlite_damage.sentence(checked.said), sqlite_damage.FIX), False
    try:
        difference = database_version.difference()
    except DatabaseError as error:
        if (cause := outage.behind(error)) and cause.fix != outage.UNREACHABLE:  # of that one the error says more
            return Finding(ERROR, "database", cause.message, cause.fix), False
        return Finding(ERROR, "database", f"no answer: {error}".strip(), outage.UNREACHABLE), False
    if difference:
        text, fix = difference
        return Finding(ERROR, "database", f"{name}: {text}", fix), False
    text = f"{connection.display_name} {name}"
    if path and checked:
        result = "ok" if checked.state == sqlite_damage.OK else checked.said
        text += f", {size(path.stat().st_size)}, quick check {result}"
    return Finding(OK, "database", f"{text}, all migrations applied"), True


def _workers(at: datetime) -> Iterator[Finding]:
    beats = list(WorkerHeartbeat.objects.order_by("cluster", "host", "pid"))
    living = [beat for beat in beats if health.is_alive(beat, at)]
    for cluster, _ in clusters():
        serving = [beat for beat in living if beat.cluster == cluster]
        if serving:
            names = ", ".join(f"{beat.host} (pid {beat.pid}, {_ago(beat.beat_at, at)})" for beat in serving)
            yield Finding(OK, f"worker {cluster}", names)
        else:
            yield Finding(ERROR, f"worker {cluster}", "no worker serves this queue", health.START)
    silent: defaultdict[str, list[WorkerHeartbeat]] = defaultdict(list)
    for beat in beats:
        if beat not in living:
            silent[beat.host].append(beat)
    for host, gone in silent.items():
        pids = sorted({beat.pid for beat in gone})
        who = f"pid {pids[0]}" if len(pids) == 1 else f"{len(pids)} processes"
        since = _ago(max(beat.beat_at for beat in gone), at)
        yield Finding(WARNING, "silent worker", f"{host} ({who}) has sent no heartbeat for {since}", health.GONE)


def _queue(at: datetime) -> Iterator[Finding]:
    queued, running = Session.objects.queued(), Session.objects.running().count()
    oldest = queued.aggregate(oldest=Min("queued_at"))["oldest"]
    since = f", the oldest for {_ago(oldest, at)}" if oldest else ""
    yield Finding(OK, "queue", f"{running} sessions running, {queued.count()} queued{since}")
    for reason, count, waits_since in waiting.long_waiting(at)[:MOST_REASONS]:
        sessions = "one session waits" if count == 1 else f"{count} sessions wait"
        yield Finding(WARNING, "queue", f"{sessions} for up to {_ago(waits_since, at)}: {reason}", WAITS)
    for depth in tasks.depths(at):
        late = health.is_late(depth, at)
        text = f"{depth.waiting} tasks waiting in the queue {depth.queue}, the oldest for {_ago(depth.since, at)}"
        hint = health.STUCK if late else ""
        yield Finding(WARNING if late else OK, "tasks", text, hint)


def _sessions(at: datetime) -> Iterator[Finding]:
    alone = Session.objects.filter(unfollowed(at)).count()
    if alone:
        yield Finding(WARNING, "sessions", f"running sessions without a worker: {alone}", health.REAP)
    budget = settings.CLAUDEOPS_DAILY_BUDGET_USD
    if budget:
        spent = spent_on(at)
        level = WARNING if spent >= budget else OK
        hint = "Scheduled sessions wait until 00:00 UTC (CLAUDEOPS_DAILY_BUDGET_USD)." if level == WARNING else ""
        more = f", ${reserve:.2f} reserved by running sessions" if (reserve := reserved()) else ""
        yield Finding(level, "budget", f"${spent:.2f} of ${budget:.2f} spent since 00:00 UTC{more}", hint)


def _agents(at: datetime) -> Iterator[Finding]:
    scheduled = Agent.objects.scheduled()
    following = scheduled.filter(next_run_at__isnull=False).order_by("next_run_at").first()
    if following is not None and following.next_run_at is not None:
        text = f"{scheduled.count()} agents scheduled, next {following.slug} at {following.next_run_at:%H:%M:%S} UTC"
        yield Finding(OK, "agents", text)
    else:
        yield Finding(OK, "agents", "no agent scheduled")
    for agent in scheduled.filter(schedule_kind=ScheduleKind.CRON):
        if problem := cron_error(agent.cron):
            yield Finding(WARNING, f"agent {agent.slug}", f"it never runs: {problem}", "Fix its cron expression.")


def _schedules(at: datetime) -> Iterator[Finding]:
    off = schedules.out_of_sync(at)
    if off:
        names = ", ".join(sorted({*off.created, *off.changed, *off.removed}))
        hint = "Run `manage.py sync_schedules`; a worker does it when it starts."
        yield Finding(WARNING, "schedules", f"out of sync with the code: {names}", hint)
    if late := schedules.late(at):
        text = f"overdue for more than five minutes: {', '.join(late)}"
        yield Finding(WARNING, "schedules", text, health.OVERDUE)
    if not off and not late:
        yield Finding(OK, "schedules", f"{len(schedules.declared())} schedules in sync")


def _trust(at: datetime) -> Iterator[Finding]:
    held, unconfirmed = numbers.held(), numbers.unconfirmed()
    text = f"{trust.mode()}; {held.shown} memories held for review, {unconfirmed.shown} unconfirmed"
    hint = "A person releases them: /memories?status=waiting&sort=-risk" if held or unconfirmed else ""
    yield Finding(OK, "trust", text, hint)


def _agent_files(at: datetime) -> Iterator[Finding]:
    count = AgentFile.objects.filter(enabled=True).count()
    troubles = trouble.troubled(MOST_FILES + 1)
    for one in troubles[:MOST_FILES]:
        yield Finding(WARNING, "agent files", one.text, one.advice)
    if len(troubles) > MOST_FILES:
        yield Finding(WARNING, "agent files", "others need a person, too", "Mend these first, then look again.")
    if watch.has_projects() and not _watched():
        text = "no worker of this host watches them: what a person saves is read within five minutes, not at once"
        yield Finding(WARNING, "agent files", text, health.OVERDUE)
    elif not troubles:
        yield Finding(OK, "agent files", f"{count:,} on, none needs a person")


def _decisions(at: datetime) -> Iterator[Finding]:
    count, wrong = 0, 0
    for project in Project.objects.exclude(path="").order_by("slug"):
        root = Path(project.path)
        if not root.is_dir():
            continue
        try:
            folder = decisions.folder_of(root)
            count += len(decisions.files_of(folder))
            problems = [f"{one.name}: {one.why}" for one in decisions.check(folder)]
        except DomainError as error:
            problems = [str(error)]
        if problems:
            wrong += 1
            more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
            hint = f"manage.py adr check --project {project.slug}"
            yield Finding(WARNING, "decisions", f"{project.slug}: {problems[0]}{more}", hint)
    if not wrong:
        yield Finding(OK, "decisions", f"{count:,} records, none with a problem")


def _memory_files(at: datetime) -> Iterator[Finding]:
    rows = list(MemoryFile.objects.select_related("project"))
    if not rows:
        yield Finding(OK, "MEMORY.md", "no file yet")
        return
    wrong = list(_git()) if any(row.host == settings.CLAUDEOPS_HOST for row in rows) else []
    approved = Proposal.objects.filter(state=ProposalState.APPROVED).values("file").order_by()
    living = {settings.CLAUDEOPS_HOST, *living_hosts(at)}
    waiting = {one["file"]: one for one in approved.annotate(n=Count("pk"), since=Min("decided_at"))}
    for row in rows:
        waits = waiting.get(row.pk)
        late = bool(waits and waits["since"] and at - waits["since"] > MOST_MINUTES)
        words = [row.problem] if row.problem else []
        if waits and row.host not in living:
            words.append(f"its host {row.host} has no worker (memory-file init on the host that has it moves it)")
        is_blocked = bool(words)
        if row.entries >= WARN_AT:
            words.append(f"{row.entries} of {MOST} entries")
        if waits and (is_blocked or late):
            promotions = "1 promotion waits" if waits["n"] == 1 else f"{waits['n']:,} promotions wait"
            words.append(f"{promotions} since {exact(waits['since'])}")
        if words:
            wrong.append(Finding(WARNING, "MEMORY.md", f"{row}: {'; '.join(words)}", MEND_FILE))
    yield from wrong[:MOST_FILES]
    if not wrong:
        yield Finding(OK, "MEMORY.md", f"{len(rows):,} file{'' if len(rows) == 1 else 's'}, none needs a person")


def _git() -> Iterator[Finding]:
    try:
        git.version()
    except GitError as error:
        yield Finding(ERROR, "MEMORY.md", str(error), error.fix)


def _watched() -> bool:
    try:
        return watch.is_watched()
    except OSError:  # the data folder cannot be written, which has a finding of its own
        return True


def _semantic_search(at: datetime) -> Iterator[Finding]:
    reason = state.off_reason()
    if reason is None:
        remaining = state.pending_count()
        yield Finding(OK, "semantic search", f"on; {remaining:,} memories wait for their vector")
        yield from _vector_search()
        yield from _vectors_file()
    elif settings.CLAUDEOPS_EMBEDDINGS == "off":
        yield Finding(OK, "semantic search", f"{reason} (CLAUDEOPS_EMBEDDINGS)")
    else:
        hint = "Search uses keywords meanwhile. `manage.py embeddings status` says more."
        yield Finding(WARNING, "semantic search", reason, hint)


def _purges(at: datetime) -> Iterator[Finding]:
    """Name the purges that were begun and are not done: texts that somebody had forgotten are still stored."""
    rows = Purge.objects.filter(state=PurgeState.RUNNING).order_by("pk")
    for pk, begun, problem in rows.values_list("pk", "created_at", "problem"):
        hint = problem or "Unless it is being carried out: run `manage.py memory purge --resume`."
        yield Finding(WARNING, f"purge {pk}", f"unfinished, begun {_ago(begun, at)} ago", hint)


def _models(at: datetime) -> Iterator[Finding]:
    states = models.of_needed(at)
    troubled = [one for one in states if one.trouble]
    for one in troubled:
        hint = "What needs it waits. `manage.py model status` says more; `manage.py model test ROLE` tries it."
        yield Finding(WARNING, f"model {one.chosen.role.name}", f"{one.trouble}{_waits(one)}", hint)
    if states and not troubled:
        summary = ", ".join(f"{one.chosen.role.name}{_waits(one)}" for one in states)
        yield Finding(OK, "models", f"{summary}: none needs a person")


def _waits(state: models.State) -> str:
    waiting = state.waiting
    return f" ({waiting.text} since {waiting.since:%Y-%m-%d %H:%M} UTC)" if waiting else ""


def _transcripts(at: datetime) -> Iterator[Finding]:
    if not settings.CLAUDEOPS_OBSERVE:
        yield Finding(OK, "transcripts", "sessions are not observed (CLAUDEOPS_OBSERVE)")
        return
    last = transcripts.seen(at)
    if last.problems:
        hint = "Their files were rewritten, so what is new in them is unknown: /learning-log"
        yield Finding(WARNING, "transcripts", f"{last.problems:,} of the last day cannot be observed any further", hint)
    elif last.last_at:
        yield Finding(
            OK, "transcripts", f"the last one was seen {_ago(last.last_at, at)} ago, named by {last.last_from}"
        )
    else:
        yield Finding(OK, "transcripts", "none was seen yet")
    for folder in transcripts.folders():
        swept = f"swept {_ago(folder.swept_at, at)} ago" if folder.swept_at else "not swept yet"
        arrival = f", took in {folder.last_name} {_ago(folder.last_at, at)} ago" if folder.last_at else ""
        if folder.problem:
            yield Finding(WARNING, f"folder {folder}", folder.problem, f"It was {swept}{arrival}.")
        else:
            yield Finding(OK, f"folder {folder}", swept + arrival)


def _silence(at: datetime) -> Iterator[Finding]:
    """What has gone quiet; workers have findings of their own."""
    alarms = silence.read(at)
    for alarm in alarms:
        if not alarm.name.startswith("worker "):
            since = f" (since {alarm.since:%Y-%m-%d %H:%M} UTC)" if alarm.since else ""
            level = ERROR if alarm.is_urgent else WARNING
            yield Finding(level, "silence", f"{alarm.text}{since}", alarm.advice)
    if not alarms:
        yield Finding(OK, "silence", "no stage has gone quiet")


def _vectors_file() -> Iterator[Finding]:
    model = state.active_model()
    try:
        index = binary_index.read_file(model) if model else None
    except binary_index.Damaged as damage:
        yield Finding(WARNING, "vectors file", f"damaged: {damage}", "The next search in a new process makes it anew.")
    else:
        if index is not None:
            yield Finding(OK, "vectors file", f"{len(index):,} vectors, as its hash says")


def _vector_search() -> Iterator[Finding]:
    model = state.active_model()
    if connection.vendor != "postgresql" or model is None:
        return
    yield Finding(OK, "vector search", pgvector.served_by(model))


def _ago(then: datetime, at: datetime) -> str:
    seconds = max(0, int((at - then).total_seconds()))
    for length, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {name}"
    return f"{seconds} s"
