"""The raw log is the truth, the database its projection: this brings the second up to the first.

Complete lines are read from the stored offset; what they mean and the new offset are written in one
transaction a batch. Replaying a log, two ingesters at once, or a crash between any two lines changes nothing
twice and loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from memories import store
from memories.errors import MemoriesError
from memories.models import Source
from sessions_app.models import CooldownAction, Event, ServiceCheck, Session, Trigger
from sessions_app.runner import log_entries, stream
from sessions_app.runner.markers import CooldownMarker, EventMarker
from sessions_app.runner.projection import Batch, Entry, FoundMemory, State, project
from sessions_app.runner.reader import complete_lines

logger = logging.getLogger(__name__)

BATCH_BYTES = 1024 * 1024
BATCH_LINES = 1000

OnEntries = Callable[[Sequence[Entry]], None]

COLUMNS_OF_STATE = ("cost_usd", "num_turns", "duration_ms", "usage", "response", "structured")
"""State that has a column of its own; the rest lives in `ingest_state`."""


class Moved(Exception):
    """Another ingester took these lines: nothing was written."""


@dataclass(slots=True)
class Ingested:
    """What one call took: lines, bytes, and the state after it."""

    lines: int = 0
    bytes: int = 0
    state: State = field(default_factory=State)


def log_path(session: Session) -> Path:
    """The session's raw log."""
    return Path(settings.CLAUDEOPS_DATA_DIR) / session.log_file


def load_state(session: Session) -> State:
    """The accumulators that go with the session's stored offset."""
    state = State(**session.ingest_state)
    state.cost_usd = float(session.cost_usd)
    state.num_turns, state.duration_ms = session.num_turns, session.duration_ms
    state.usage, state.response, state.structured = dict(session.usage), session.response, session.structured
    return state


def ingest(
    session_id: int, *, final: bool = False, on_entries: OnEntries | None = None, at: datetime | None = None
) -> Ingested:
    """Take every complete line that is there. `final`: the process has ended, so the last line is whole too.

    `on_entries` is called with the readable lines of each batch after it was stored.
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
        except Moved:
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
    """Each memory compared with what is known, by a model too: before the transaction, which holds up all others."""
    prepared: list[store.Prepared | None] = []
    for found in batch.memories:
        try:
            prepared.append(store.prepare(found.statement, _provenance(session, found)))
        except MemoriesError:
            prepared.append(None)  # refused again, and counted, when it is to be stored
    return prepared


def _write(session: Session, state: State, batch: Batch, end: int, prepared: Sequence[store.Prepared | None]) -> None:
    with transaction.atomic():
        mine = Session.objects.filter(pk=session.pk, ingest_offset=session.ingest_offset)
        if not mine.update(ingest_offset=end, **_columns(session, state)):
            raise Moved
        before = dict(state.stats)
        _events(session, state, batch)
        _cooldowns(session, state, batch)
        _checks(session, batch)
        _memories(session, state, batch, prepared)
        log_entries.store(session.pk, batch.entries)
        if state.stats != before:
            Session.objects.filter(pk=session.pk).update(**_columns(session, state))
    for warning in batch.warnings:
        logger.warning("session %s: %s", session.pk, warning)


def _columns(session: Session, state: State) -> dict[str, Any]:
    kept = asdict(state)
    columns = {name: kept.pop(name) for name in COLUMNS_OF_STATE}
    columns["cost_usd"] = Decimal(f"{state.cost_usd:.6f}")
    columns["ingest_state"] = kept
    columns["stats"] = state.stats
    if session.runner == "claude" and state.model and not session.model:
        columns["model"] = state.model
    return columns


def _events(session: Session, state: State, batch: Batch) -> None:
    found: dict[str, tuple[EventMarker, datetime]] = {}
    for event, at in batch.events:
        found.setdefault(event.fingerprint, (event, at))
    known = _known(Event, session, list(found))
    state.count("duplicate_events", len(batch.events) - len(found.keys() - known))
    state.count("events", len(found.keys() - known))
    Event.objects.bulk_create(
        [
            Event(
                session_id=session.pk,
                level=event.level,
                service=event.service,
                message=event.message,
                created_at=at,
                fingerprint=fingerprint,
            )
            for fingerprint, (event, at) in found.items()
            if fingerprint not in known
        ],
        ignore_conflicts=True,
    )


def _cooldowns(session: Session, state: State, batch: Batch) -> None:
    found: dict[str, tuple[CooldownMarker, datetime]] = {}
    for marker, fingerprint, at in batch.cooldowns:
        found.setdefault(fingerprint, (marker, at))
    known = _known(CooldownAction, session, list(found))
    state.count("duplicate_cooldowns", len(batch.cooldowns) - len(found.keys() - known))
    state.count("cooldowns", len(found.keys() - known))
    CooldownAction.objects.bulk_create(
        [
            CooldownAction(
                session_id=session.pk,
                action=marker.action,
                service=marker.service,
                outcome=marker.outcome,
                message=marker.message,
                dry_run=session.dry_run,
                created_at=at,
                fingerprint=fingerprint,
            )
            for fingerprint, (marker, at) in found.items()
            if fingerprint not in known
        ],
        ignore_conflicts=True,
    )


def _known(model: type[Event] | type[CooldownAction], session: Session, fingerprints: list[str]) -> set[str]:
    if not fingerprints:
        return set()
    rows = model._default_manager.filter(session_id=session.pk, fingerprint__in=fingerprints)
    return set(rows.values_list("fingerprint", flat=True))


def _checks(session: Session, batch: Batch) -> None:
    if batch.checks:
        latest = {check.service: (check, at) for check, at in batch.checks}
        ServiceCheck.objects.bulk_create(
            [
                ServiceCheck(
                    session_id=session.pk,
                    service=check.service,
                    status=check.status,
                    healthy=check.healthy,
                    detail=check.detail,
                    checked_at=at,
                )
                for check, at in latest.values()
            ],
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
            batch.warnings.append(f"a memory was refused: {refusal}")
            continue
        state.count(f"memories_{remembered.outcome}")
        state.count("memories_contradicted", len(remembered.contradicted))
        if remembered.outcome in ("held", "discarded"):
            batch.warnings.append(f"a memory was {remembered.outcome} by the gate: {remembered.reason}")


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
