"""Ingest a session's raw log: store its new complete lines as events, memories, cooldowns, checks and log entries.

The raw log is the source of truth. The rows of a batch of lines and the offset after it are written in one transaction:
ingesting a log again, two ingests at once, or a crash at any line stores nothing twice and loses nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from decimal import Decimal
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.db import DataError, IntegrityError, transaction
from django.db.models import Manager
from django.utils import timezone

from claudeops.lib.domain_error import DomainError
from claudeops.lib.secrets import mask
from memories import store
from memories.capture.fields import agent_id
from memories.capture.learned import Learned
from memories.capture.support import Evidence, Support
from memories.files import capture
from memories.library import journal
from memories.models import AgentFile, CaptureOutcome, Project, Source
from sessions_app.credit import notes
from sessions_app.events import acknowledgement
from sessions_app.models import (
    TASK_TEXT,
    CooldownAction,
    Event,
    How,
    PromptReceipt,
    Remediation,
    Runner,
    ServiceCheck,
    Session,
    SourceRule,
    Trigger,
)
from sessions_app.receipts import told_to
from sessions_app.runner import copied, exposure, log_entries, quoting, stream
from sessions_app.runner.exposure import Read, Reading, begun
from sessions_app.runner.outcome import Spending
from sessions_app.runner.projection import BLOCKS, PHRASES_TOO, Batch, Entry, FoundMemory, State, pass_over, project
from sessions_app.runner.raw_log import RawLine, complete_lines, line_at, log_path
from sessions_app.runner.turns import Proof, Reader

logger = logging.getLogger(__name__)

BATCH_BYTES = 1024 * 1024
BATCH_LINES = 1000
BATCH_MEMORIES = 50
"""Most lines with memories in a transaction: each takes some milliseconds, and others wait for the write lock."""
ATTEMPTS = 3
"""How often a line is offered to the database before it is skipped and counted."""
REFUSALS = (DataError, IntegrityError, ValueError, TypeError, ArithmeticError, RecursionError)
"""What a database or its driver raises for a value that it does not take. Not the errors of a database that is down,
locked, full or not migrated: these are not the line's."""

IMPORTED = "import"
"""Who acknowledges the old events of an imported log."""

OnEntries = Callable[[Sequence[Entry]], None]
Row = TypeVar("Row", Event, CooldownAction)

STATE_COLUMNS = ("response", "structured")
"""Fields of the state that are stored in a column alone; the others are stored in `ingest_state`."""


class OffsetMoved(Exception):
    """Another ingest has stored these lines, or records of them: nothing was written."""


@dataclass(slots=True)
class Ingested:
    lines: int = 0
    bytes: int = 0
    state: State = field(default_factory=State)


def load_state(session: Session) -> State:
    """Return the accumulators at the session's stored offset."""
    data = dict(session.ingest_state)
    spending = data.pop("spending", None)
    if spending is None:  # stored by a version before estimates
        data["duration_ms"] = session.duration_ms
        spending = {
            "stated_usd": float(session.cost_usd),
            "stated_turns": session.num_turns,
            "stated_usage": dict(session.usage),
        }
    spending = {"turns": session.num_turns, **spending}  # stored by a version that did not count them
    reading = data.pop("reading", None)
    if reading is None:  # its first line is to come, or a version before this one has read a part of its log
        current_reading = begun(data.get("before", ()), unread=bool(session.ingest_offset))
    else:
        current_reading = Reading(**reading)
    state = State(**data, spending=Spending(**spending), reading=current_reading)
    state.response, state.structured = session.response, session.structured
    state.in_project = session.project_id is not None
    state.learns = ""
    if session.project is not None and session.agent is not None and _learns(session.project, session.agent.slug):
        state.learns = PHRASES_TOO if session.project.takes_phrases else BLOCKS
    return state


def _learns(project: Project, slug: str) -> bool:
    """Whether the agent's memory file takes what it learned: a person may have switched it off."""
    return not AgentFile.objects.filter(project=project, agent=agent_id(slug), enabled=False).exists()


def ingest(
    session_id: int, *, final: bool = False, on_entries: OnEntries | None = None, at: datetime | None = None
) -> Ingested:
    """Store every complete line that is new. `final`: the process has ended, so the last line is complete too.

    `on_entries` gets the log entries of each batch once stored. A line without a time stamp is dated now. Of an
    imported log it gets the time of the line before it; with none before it, `at` (UTC; the session's start when None).

    A batch that the database refuses is halved until one line is left; a line that is refused ATTEMPTS times is skipped
    and counted as `refused_lines`.
    """
    progress = Ingested()
    session = Session.objects.get(pk=session_id)
    progress.state = load_state(session)
    sources = Sources(session)
    most, refused = BATCH_LINES, 0
    while True:
        batch, lines, end = _read(session, progress.state, final=final, at=at, most=most)
        if not lines:
            return progress
        try:
            sources.keep(batch, progress.state)
            provenances = [sources.provenance(item) for item in batch.memories]
            learned = [(item, sources.of_agent(read, when)) for item, read, when in batch.learned]
            used, dropped = notes.shown_of(session, batch.used, batch.said)
            progress.state.count("used_not_shown", dropped)
            _write(session, progress.state, batch, end, provenances, _prepared(batch, provenances), learned, used)
        except (OffsetMoved, *REFUSALS) as error:
            session = Session.objects.get(pk=session_id)
            progress.state = load_state(session)
            refused = 0 if lines > 1 or isinstance(error, OffsetMoved) else refused + 1
            most = most if isinstance(error, OffsetMoved) else max(lines // 2, 1)
            if not refused:
                continue
            if refused < ATTEMPTS or not _skip(session, progress.state, end, error):
                continue
            batch = Batch()
        refused, most = 0, min(most * 2, BATCH_LINES)
        progress.lines += lines
        progress.bytes += end - session.ingest_offset
        session.ingest_offset = end
        if on_entries and batch.entries:
            on_entries(batch.entries)


def _skip(session: Session, state: State, end: int, error: Exception) -> bool:
    """Pass over the one line up to `end`. False when another ingest has moved the offset."""
    state.count("lines")
    state.count("refused_lines")
    state.reading.missed()
    mine = Session.objects.filter(pk=session.pk, ingest_offset=session.ingest_offset)
    moved = mine.update(ingest_offset=end, **_columns(session, state))
    reason = str(error).partition("\n")[0]
    logger.warning("session %s: the line before byte %s was skipped: %s", session.pk, end, reason)
    return bool(moved)


def _read(session: Session, state: State, *, final: bool, at: datetime | None, most: int) -> tuple[Batch, int, int]:
    batch, lines, end = Batch(), 0, session.ingest_offset
    if not session.log_file:
        return batch, lines, end
    now = timezone.now()
    undated = (at or session.started_at or now) if session.trigger == Trigger.IMPORT else None
    table = table_of(session.project)
    read = list(_parsed(session, final=final, most=most))
    digests = [] if session.runner == Runner.REPLAY else [copied.digest_of(line.raw, Session) for _, line in read]
    old_digests = {one for one in digests if one is not None}
    old_digests = copied.known_elsewhere(session, old_digests) if session.trigger == Trigger.IMPORT else set()
    for (raw, line), digest in zip_longest(read, digests):
        if raw.data is None:
            state.count("lines")
            state.count("oversized")
            state.reading.missed()
        elif line.type or line.problem or line.bad:
            take = pass_over if digest in old_digests else project
            take(line, raw.start, state, batch, now=now, undated=undated, table=table)
            if digest is not None and digest not in old_digests:
                batch.records.add(digest)
        lines += 1
        end = raw.end
        if len(batch.memories) >= BATCH_MEMORIES:
            break
    if batch.bad:
        batch.warnings.append(f"fields with values that are not accepted were dropped: {', '.join(sorted(batch.bad))}")
    return batch, lines, end


def _parsed(session: Session, *, final: bool, most: int) -> Iterator[tuple[RawLine, stream.Line]]:
    """Yield the next lines, BATCH_BYTES of them or `most`; an empty one for a line that is too long to read."""
    lines = complete_lines(log_path(session), session.ingest_offset, final=final)
    for raw in islice(lines, most):
        include_subagents = settings.CLAUDEOPS_INCLUDE_SUBAGENTS
        yield raw, stream.parse(raw.data or b"", include_subagents=include_subagents)
        if raw.end - session.ingest_offset >= BATCH_BYTES:
            return


def _prepared(batch: Batch, provenances: Sequence[store.Provenance]) -> list[store.Prepared | None]:
    """Compare each memory with what is known. This may call a model, so it runs before the transaction."""
    prepared: list[store.Prepared | None] = []
    for memory, provenance in zip(batch.memories, provenances, strict=True):
        try:
            prepared.append(store.prepare(memory.statement, provenance))
        except DomainError:
            prepared.append(None)  # `_memories` counts the refusal
    return prepared


def _write(
    session: Session,
    state: State,
    batch: Batch,
    end: int,
    provenances: Sequence[store.Provenance],
    prepared: Sequence[store.Prepared | None],
    learned: Sequence[tuple[Learned, store.Provenance]],
    used: Mapping[int, How],
) -> None:
    with transaction.atomic():
        mine = Session.objects.filter(pk=session.pk, ingest_offset=session.ingest_offset)
        if not mine.update(ingest_offset=end, **_columns(session, state)):
            raise OffsetMoved
        if copied.keep(session, batch.records) and session.trigger == Trigger.IMPORT:
            raise OffsetMoved  # another log with the same history was stored meanwhile
        before = dict(state.stats)
        cooldowns = [
            CooldownAction(
                session_id=session.pk, fingerprint=fingerprint, created_at=at, dry_run=session.dry_run, **asdict(marker)
            )
            for marker, fingerprint, at in batch.cooldowns
        ]
        _insert_new(CooldownAction.objects, "cooldowns", cooldowns, session, state)
        _journal(session, cooldowns)
        _checks(session, batch)
        _memories(session, state, batch, provenances, prepared)
        _learned(session, state, learned)
        state.count("memories_used", notes.note(session.pk, used))
        log_entries.store(session.pk, batch.entries)
        # Last: their counts by hour stay locked until the end, and the memories wait for the one who writes some.
        events = [
            Event(session_id=session.pk, fingerprint=event.fingerprint, created_at=at, **asdict(event))
            for event, at in batch.events
        ]
        if session.trigger == Trigger.IMPORT:
            acknowledgement.acknowledge_if_old(events, by=IMPORTED, at=timezone.now())
        _insert_new(Event.objects, "events", events, session, state)
        if state.stats != before:
            Session.objects.filter(pk=session.pk).update(**_columns(session, state))
    for warning in batch.warnings:
        logger.warning("session %s: %s", session.pk, warning)


def _journal(session: Session, actions: Sequence[CooldownAction]) -> None:
    """Log what a session says that it restarted or redeployed, once."""
    if session.dry_run or session.trigger == Trigger.IMPORT:
        return
    for one in actions:
        journal.note(
            "restart" if one.action == Remediation.RESTART else "deploy",
            one.service,
            f"{one.outcome}: {one.message}" if one.message else one.outcome,
            session=session.pk,
            agent=session.agent.slug if session.agent else "",
            project=session.project.slug if session.project else "",
            key=f"cooldown {session.uuid} {one.fingerprint}",
            at=one.created_at,
        )


def _columns(session: Session, state: State) -> dict[str, Any]:
    data = _as_dict(state) | {"spending": _as_dict(state.spending), "reading": _as_dict(state.reading)}
    columns = {name: data.pop(name) for name in STATE_COLUMNS}
    columns["cost_usd"] = Decimal(f"{state.spending.cost_usd:.6f}")
    columns["num_turns"], columns["usage"] = state.spending.num_turns, state.spending.usage
    columns["duration_ms"] = state.duration_ms
    columns["ingest_state"] = data
    columns["stats"] = state.stats
    if session.runner == "claude" and state.model and not session.model:
        columns["model"] = state.model
    return columns


def _as_dict(state: State | Spending | Reading) -> dict[str, Any]:
    """`asdict()`, which would copy all that is within."""
    return {field.name: getattr(state, field.name) for field in fields(state)}


def _insert_new(manager: Manager[Row], name: str, rows: Sequence[Row], session: Session, state: State) -> None:
    """Insert the rows whose fingerprint is new to the session; count those as `name`, the others as duplicates."""
    if not rows:
        return
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


def _memories(
    session: Session,
    state: State,
    batch: Batch,
    provenances: Sequence[store.Provenance],
    prepared: Sequence[store.Prepared | None],
) -> None:
    for memory, provenance, ready in zip(batch.memories, provenances, prepared, strict=True):
        try:
            remembered = store.remember(memory.statement, provenance, at=memory.at, prepared=ready)
        except DomainError as refusal:
            state.count("memories_refused")
            batch.warnings.append(f"memory refused: {refusal}")
            continue
        if memory.learning is not None:
            key, origin = memory.statement.key, origin_of(session)
            capture.note(memory.learning, remembered, provenance, origin=origin, key=key, at=memory.at)
        state.count(f"memories_{remembered.outcome}")
        state.count("memories_contradicted", len(remembered.contradicted))
        if remembered.outcome in ("held", "discarded"):
            batch.warnings.append(f"memory {remembered.outcome} by the gate: {remembered.reason}")


def _learned(session: Session, state: State, learned: Sequence[tuple[Learned, store.Provenance]]) -> None:
    """Note what the agent's answers brought for its memory file and was not taken, and replace what they replace."""
    for learning, provenance in learned:
        at = provenance.at or timezone.now()
        for refused in learning.refused:
            state.count(
                "learnings_refused", len(capture.note_refused(refused, provenance, origin=origin_of(session), at=at))
            )
        if learning.replaces:
            rows = capture.replace_others(learning, provenance, origin=origin_of(session), at=at)
            state.count("learnings_replaced", sum(row.outcome == CaptureOutcome.REPLACED for row in rows))


def origin_of(session: Session) -> str:
    """Return how the captures of a session are named."""
    return f"session:{session.uuid}"


class Sources:
    """What the statements of a session come from: what it had read, whether they repeat it, what it was told.

    Texts of outside results come from the batches, or once more from the raw log: an ingest may begin behind them.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._texts: dict[int, tuple[quoting.Text, ...]] = {}
        self._told: frozenset[int] | None = None
        self._evidence, self._read_to = Evidence(), 0
        sources = tuple(session.exposed_before)
        ours = session.trigger != Trigger.IMPORT  # an imported log is a file that anybody could have made
        self._reader = Reader(
            table_of(session.project), begun(sources, unread=False), ours=ours, evidence=self._evidence
        )
        self._reader.begin(session.task_text, (TASK_TEXT, *sources) if TASK_TEXT in sources else ())

    def keep(self, batch: Batch, state: State) -> None:
        """Keep the texts of a batch that statements may still be compared with."""
        self._texts |= {at: tuple(quoting.Text(text) for text in texts) for at, texts in batch.results.items()}
        wanted = {at for at, _ in state.reading.read().results}
        for memory in batch.memories:
            wanted.update(at for at, _ in memory.read.results)
        self._texts = {at: texts for at, texts in self._texts.items() if at in wanted}

    def provenance(self, found: FoundMemory) -> store.Provenance:
        base = self._said(found.read, found.at)
        agent = agent_id(self._slug) if found.learning is not None else None
        support = self.support(found.statement.text, found.offset)
        taint = self.taint(found.statement.text, found.read, support)
        return replace(base, channel=found.channel, agent=agent, taint=taint, told=self.told()).supported(support)

    def support(self, text: str, before: int | None = None) -> Support:
        """Return who supports a text by what stands in the raw log before a line's first byte (None: in all of it).

        The log is read once more, from its first byte: an ingest may begin behind what brought the words.
        """
        for raw in complete_lines(log_path(self.session), self._read_to) if self.session.log_file else ():
            if before is not None and raw.start >= before:
                break
            self._reader.read(raw.data, raw.start, raw.end)
            self._read_to = raw.end
        return self._evidence.support(text)

    def of_agent(self, read: Read, at: datetime) -> store.Provenance:
        """Return the provenance of what an answer says about the memory file of the session's agent."""
        return replace(self._said(read, at), agent=agent_id(self._slug), told=self.told())

    @property
    def _slug(self) -> str:
        return self.session.agent.slug if self.session.agent else ""

    def _said(self, read: Read, at: datetime) -> store.Provenance:
        session = self.session
        imported = session.trigger == Trigger.IMPORT
        slug = self._slug
        return store.Provenance(
            source=Source.IMPORT if imported else Source.RUN,
            actor="import" if imported else f"agent:{slug}" if slug else f"session:{session.pk}",
            session_id=session.pk,
            tier=session.tier,
            project_id=session.project_id,
            at=at,
            exposure=read.exposure,
            exposed_to=read.sources,
        )

    def taint(self, text: str, read: Read, support: Support) -> str:
        """Say what of its results or its task a statement repeats; empty when it is the session's own.

        What a person said or the house shows may stand in outside text, too, but not as a marker.
        """
        task = [(TASK_TEXT, quoting.Text(self.session.task_text))] if TASK_TEXT in read.sources else []
        results = [(source, one) for at, source in read.results for one in self._of(at)]
        texts = task + results
        return quoting.repeated(text, [("", one) for _, one in texts] if support.is_known else texts)

    def told(self) -> frozenset[int]:
        if self._told is None:
            self._told = told_to(self.session.pk)
        return self._told

    def _of(self, at: int) -> tuple[quoting.Text, ...]:
        if at not in self._texts:
            raw = line_at(log_path(self.session), at)
            records = stream.parse(raw).records if raw else ()
            results = (record for record in records if isinstance(record, stream.ToolResult))
            self._texts[at] = tuple(quoting.Text(mask(result.text)) for result in results)
        return self._texts[at]


def provenance_now(session: Session, said: store.Provenance, text: str) -> store.Provenance:
    """Add to `said` what the session has read at this moment, also what is not ingested yet. Writes nothing."""
    state, batch = load_state(session), Batch()
    sources = Sources(session)
    if session.log_file:
        now, table = timezone.now(), table_of(session.project)
        for raw in complete_lines(log_path(session), session.ingest_offset):
            line = stream.parse(raw.data) if raw.data is not None else stream.Line(unread=True)
            project(line, raw.start, state, batch, now=now, table=table)
    sources.keep(batch, state)
    read, support = state.reading.read(), sources.support(text)
    return replace(
        said,
        exposure=read.exposure,
        exposed_to=read.sources,
        taint=sources.taint(text, read, support),
        told=sources.told(),
    ).supported(support)


def proof_of(cli_session_id: str, path: Path) -> Proof:
    """Return what our hooks know of a session of the CLI whose transcript is at `path`. One query."""
    receipts = list(PromptReceipt.objects.filter(cli_session_id=cli_session_id)) if cli_session_id else []
    rows = [row for row in receipts if row.transcript_path and Path(row.transcript_path).resolve() == path]
    by_agent = any(row.by_agent for row in receipts)
    return Proof(frozenset(row.prompt for row in rows if row.prompt and not by_agent), is_kept=bool(rows))


def table_of(project: Project | None) -> exposure.Rules:
    """Return what exposes a session of a project, with the operator's rules. One query."""
    added = tuple(SourceRule.objects.values_list("tool", "counts_as"))
    return exposure.rules(added, trusts_repository=project is not None and project.trusts_repository)
