"""Ingest a session's raw log: store its new complete lines as events, memories, cooldowns, checks and log entries.

The raw log is the source of truth; the rows are derived from it. What a batch of lines says and the offset after it
are written in one transaction. Ingesting a log again, two ingests at once, or a crash at any line stores nothing
twice and loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import Manager
from django.utils import timezone

from memories import store
from memories.errors import MemoriesError
from memories.models import Source
from sessions_app.models import CooldownAction, Event, ServiceCheck, Session, Trigger
from sessions_app.runner import log_entries, stream
from sessions_app.runner.projection import Batch, Entry, FoundMemory, State, project
from sessions_app.runner.reader import complete_lines

logger = logging.getLogger(__name__)

BATCH_BYTES = 1024 * 1024
BATCH_LINES = 1000

OnEntries = Callable[[Sequence[Entry]], None]
Row = TypeVar("Row", Event, CooldownAction)

STATE_COLUMNS = ("cost_usd", "num_turns", "duration_ms", "usage", "response", "structured")
"""Fields of the state with a column of their own; the others are stored in `ingest_state`."""


class OffsetMoved(Exception):
    """Another ingest has stored these lines: nothing was written."""


@dataclass(slots=True)
class Ingested:
    """The lines and bytes that one call stored, and the state after it."""

    lines: int = 0
    bytes: int = 0
    state: State = field(default_factory=State)


def log_path(session: Session) -> Path:
    """The session's raw log."""
    return Path(settings.CLAUDEOPS_DATA_DIR) / session.log_file


def load_state(session: Session) -> State:
    """The accumulators that belong to the session's stored offset."""
    state = State(**session.ingest_state)
    state.cost_usd = float(session.cost_usd)
    state.num_turns, state.duration_ms = session.num_turns, session.duration_ms
    state.usage, state.response, state.structured = dict(session.usage), session.response, session.structured
    return state


def ingest(
    session_id: int, *, final: bool = False, on_entries: OnEntries | None = None, at: datetime | None = None
) -> Ingested:
    """Store every complete line that is new. `final`: the process has ended, so the last line is complete too.

    `on_entries` is called with the log entries of each batch after they were stored. `at` (UTC; now when None) dates
    lines that have no time stamp.
    """
    done = Ingested()
    session = Session.objects.get(pk=session_id)
    done.state = load_state(session)
    while True:
        batch, lines, end = _read(session, done.state, final=final, now=at or timezone.now())
        if not lines:
            return done
        prepared = _prepared(session, batch)
        try:
            _write(session, done.state, batch, end, prepared)
        except OffsetMoved:
            session = Session.objects.get(pk=session_id)
            done.state = load_state(session)
            continue
        done.lines += lines
        done.bytes += end - session.ingest_offset
        session.ingest_offset = end
        if on_entries and batch.entries:
            on_entries(batch.entries)


def _read(session: Session, state: State, *, final: bool, now: datetime) -> tuple[Batch, int, int]:
    batch, lines, end = Batch(), 0, session.ingest_offset
    if not session.log_file:
        return batch, lines, end
    for raw in complete_lines(log_path(session), session.ingest_offset, final=final):
        if raw.data is None:
            state.count("lines")
            state.count("oversized")
        else:
            line = stream.parse(raw.data, include_subagents=settings.CLAUDEOPS_INCLUDE_SUBAGENTS)
            if line.type or line.problem:
                project(line, raw.start, state, batch, now=now)
        lines += 1
        end = raw.end
        if lines >= BATCH_LINES or end - session.ingest_offset >= BATCH_BYTES:
            break
    return batch, lines, end


def _prepared(session: Session, batch: Batch) -> list[store.Prepared | None]:
    """Compare each memory with what is known. This may call a model, so it runs before the transaction."""
    prepared: list[store.Prepared | None] = []
    for found in batch.memories:
        try:
            prepared.append(store.prepare(found.statement, _provenance(session, found)))
        except MemoriesError:
            prepared.append(None)  # `_memories` counts the refusal
    return prepared


def _write(session: Session, state: State, batch: Batch, end: int, prepared: Sequence[store.Prepared | None]) -> None:
    with transaction.atomic():
        mine = Session.objects.filter(pk=session.pk, ingest_offset=session.ingest_offset)
        if not mine.update(ingest_offset=end, **_columns(session, state)):
            raise OffsetMoved
        before = dict(state.stats)
        events = [
            Event(session_id=session.pk, fingerprint=event.fingerprint, created_at=at, **asdict(event))
            for event, at in batch.events
        ]
        _insert_new(Event.objects, "events", events, session, state)
        cooldowns = [
            CooldownAction(
                session_id=session.pk, fingerprint=fingerprint, created_at=at, dry_run=session.dry_run, **asdict(marker)
            )
            for marker, fingerprint, at in batch.cooldowns
        ]
        _insert_new(CooldownAction.objects, "cooldowns", cooldowns, session, state)
        _checks(session, batch)
        _memories(session, state, batch, prepared)
        log_entries.store(session.pk, batch.entries)
        if state.stats != before:
            Session.objects.filter(pk=session.pk).update(**_columns(session, state))
    for warning in batch.warnings:
        logger.warning("session %s: %s", session.pk, warning)


def _columns(session: Session, state: State) -> dict[str, Any]:
    kept = asdict(state)
    columns = {name: kept.pop(name) for name in STATE_COLUMNS}
    columns["cost_usd"] = Decimal(f"{state.cost_usd:.6f}")
    columns["ingest_state"] = kept
    columns["stats"] = state.stats
    if session.runner == "claude" and state.model and not session.model:
        columns["model"] = state.model
    return columns


def _insert_new(manager: Manager[Row], name: str, rows: Sequence[Row], session: Session, state: State) -> None:
    """Insert the rows whose fingerprint is new to the session; count those as `name`, the others as duplicates."""
    new: dict[str, Row] = {}
    for row in rows:
        new.setdefault(row.fingerprint, row)
    stored = manager.filter(session=session, fingerprint__in=list(new))
    for fingerprint in stored.values_list("fingerprint", flat=True):
        del new[fingerprint]
    state.count(f"duplicate_{name}", len(rows) - len(new))
    state.count(name, len(new))
    manager.bulk_create(new.values(), ignore_conflicts=True)


def _checks(session: Session, batch: Batch) -> None:
    latest = {check.service: (check, at) for check, at in batch.checks}
    ServiceCheck.objects.bulk_create(
        [ServiceCheck(session_id=session.pk, checked_at=at, **asdict(check)) for check, at in latest.values()],
        update_conflicts=True,
        unique_fields=["session", "service"],
        update_fields=["status", "healthy", "detail", "checked_at"],
    )


def _memories(session: Session, state: State, batch: Batch, prepared: Sequence[store.Prepared | None]) -> None:
    for found, ready in zip(batch.memories, prepared, strict=True):
        try:
            said = _provenance(session, found)
            remembered = store.remember(found.statement, said, at=found.at, prepared=ready)
        except MemoriesError as refusal:
            state.count("memories_refused")
            batch.warnings.append(f"memory refused: {refusal}")
            continue
        state.count(f"memories_{remembered.outcome}")
        state.count("memories_contradicted", len(remembered.contradicted))
        if remembered.outcome in ("held", "discarded"):
            batch.warnings.append(f"memory {remembered.outcome} by the gate: {remembered.reason}")


def _provenance(session: Session, found: FoundMemory) -> store.Provenance:
    imported = session.trigger == Trigger.IMPORT
    slug = session.agent.slug if session.agent else ""
    return store.Provenance(
        source=Source.IMPORT if imported else Source.RUN,
        actor="import" if imported else f"agent:{slug}" if slug else f"session:{session.pk}",
        session_id=session.pk,
        tier=session.tier,
        project_id=session.project_id,
        channel=found.channel,
        at=found.at,
    )
