"""`manage.py memory`: list, correct, recall, export and import memories."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from claudeops.lib.cli import (
    Refusal,
    Result,
    VerbCommand,
    arg,
    by,
    listing,
    more,
    reading,
    text_or_stdin,
    verb,
)
from claudeops.lib.humanize import quantity
from memories.api.serializers import all_as_data, as_data, change_data
from memories.capture.fields import check_typed_confidence, checked_agent
from memories.curate import rebuild
from memories.exchange.copies import copy_to
from memories.exchange.import_export import export_lines, import_lines
from memories.injection import ops
from memories.injection.windows import DAYS, MOST_DAYS, upcoming, usable
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.merge import erase_all
from memories.lifecycle.projects import find_project
from memories.lifecycle.sweep import is_due, sweep
from memories.management import held as stopped
from memories.management import memory_text
from memories.management.parameters import (
    DRY_RUN,
    MEMORY,
    REASON,
    WINDOW,
    Filters,
    Why,
    filter_rows,
    find_memory,
    look,
    memories,
    project,
)
from memories.models import Memory, MemoryChange, Project, Source, Verdict, trust
from memories.models.memory import ANY_AGENT, ANY_PROJECT
from memories.observe.categories import Reclassified, reclassify
from memories.queries.filters import HELD, UNCONFIRMED, MemoryFilterSet
from memories.store import Provenance, Statement, remember
from memories.taxonomy import KNOWLEDGE, TAXONOMIES

TIERS = (1, 2, 3)
MOST_LISTED = 10_000


@dataclass(frozen=True)
class EditOptions:
    observation: str | None = arg("new text; the confidence stays", metavar="TEXT")
    service: str | None = arg("general removes it")
    category: str | None = None
    confidence: float | None = arg("from 0 to 1; at or above the threshold it reactivates the memory")
    persistent: bool | None = arg("whether it never decays")
    surface: str | None = arg(f"when it is told: {WINDOW}; empty: by its rank", metavar="WINDOW")


class Command(VerbCommand):
    help = "Memories: what the agents know."

    @verb
    def add(
        self,
        observation: str = arg(
            "what was observed, in one sentence; - reads it from stdin", metavar="TEXT", read=text_or_stdin
        ),
        *,
        category: str = arg("timing, dependency, behavior, remediation, maintenance"),
        service: str | None = arg("default: general"),
        confidence: float | None = arg("from 0 to 1 (default 0.7)"),
        taxonomy: str = arg(f"one of {', '.join(TAXONOMIES)} (default ops)", default="ops"),
        project: Project | None = project("a project's slug (default: for all)"),
        agent: str = arg("whose memory it is (default: every agent's)", metavar="NAME", default=""),
        tag: Sequence[str] = arg("may be given several times", metavar="TAG"),
        persistent: bool = arg("never decays"),
        surface: str = arg(f"when it is told: {WINDOW}", metavar="WINDOW", default=""),
        why: Why,
    ) -> Result:
        """Add a memory."""
        statement = Statement(category, observation, service, taxonomy, confidence, tuple(tag), surface=surface)
        provenance = Provenance(
            Source.HUMAN,
            why.by,
            project_id=project.pk if project else None,
            agent=checked_agent(agent, taxonomy),
            channel="human",
        )
        with transaction.atomic():
            stored = remember(statement, provenance).memory_id
            assert stored is not None  # noqa: S101  (a person's memory is stored or refused)
            if persistent:
                verbs.mark_persistent(stored, **vars(why))
        memory = Memory.objects.select_related("project").get(pk=stored)
        if confidence is not None and not 0 <= confidence <= 1:
            self.stderr.write(f"Confidence is a number from 0 to 1; {memory.confidence:g} was stored.")
        return Result(as_data(memory), f"Memory {stored} is stored: {memory}", look(stored))

    @verb
    def list_(
        self,
        *,
        inactive: bool = arg("only inactive ones", group="state"),
        held: bool = arg("only those held for review", group="state"),
        unconfirmed: bool = arg("only those that no prompt is told until confirmed", group="state"),
        all_: bool = arg("all of them", group="state"),
        limit: int = arg(f"how many, last confirmed first (1 to {MOST_LISTED})", within=(1, MOST_LISTED), default=50),
        filters: Filters,
    ) -> Result:
        """Memories, the last confirmed first."""
        chosen: dict[str, Any] = {}
        if held or unconfirmed:
            chosen["status"] = HELD if held else UNCONFIRMED
        elif not all_:
            chosen = {"verdict": Verdict.ALLOW, "active": "false" if inactive else "true"}
        rows = filter_rows(MemoryFilterSet, {**vars(filters), **chosen}, Memory.objects.all())
        count = rows.count()
        page = list(rows.select_related("project")[:limit])
        text = memory_text.as_table(page) + more(len(page), count)
        return Result({"count": count, "memories": all_as_data(page)}, text)

    @verb
    def show(self, memory: str = MEMORY) -> Result:
        """One memory with its history."""
        row = find_memory(memory)
        changes = list(MemoryChange.objects.filter(memory=row))
        data = as_data(row) | {"history": [change_data(change) for change in changes]}
        return Result(data, memory_text.as_text(row, changes))

    @verb
    def edit(
        self,
        memory: str = MEMORY,
        *,
        tag: Sequence[str] | None = arg("the new tags; may be given several times", metavar="TAG"),
        expires: str | None = arg("a day like 2026-12-31 (its end, UTC), or never", metavar="WHEN"),
        deactivate: bool = arg("take it out of use", group="verb"),
        reactivate: bool = arg("use it again", group="verb"),
        approve: bool = arg("allow a held memory, confirm an unconfirmed one", group="verb"),
        by: str = by(),
        reason: str = REASON,
        options: EditOptions,
    ) -> Result:
        """Correct a memory; options that are not given change nothing."""
        check_typed_confidence(options.confidence)
        fields: dict[str, Any] = {name: value for name, value in vars(options).items() if value is not None}
        if tag is not None:
            fields["tags"] = tag
        if expires is not None:
            fields["expires_at"] = _end_of(expires)
        chosen = {verbs.deactivate: deactivate, verbs.reactivate: reactivate, verbs.approve: approve}
        then = [change for change, is_chosen in chosen.items() if is_chosen]
        if not fields and not then:
            raise Refusal("usage", "Nothing to change was given.", "manage.py memory edit --help lists what can be.")
        pk = find_memory(memory).pk
        with transaction.atomic():
            typed = Provenance.typed_by(by)
            changes = [verbs.edit(pk, by=by, reason=reason, provenance=typed, **fields)] if fields else []
            changes += [change(pk, by=by, reason=reason) for change in then]
        changed = [change for change in changes if change is not None]
        after = Memory.objects.select_related("project").get(pk=pk)
        data = as_data(after) | {"changes": [change_data(change) for change in changed]}
        text = f"Memory {pk} is changed: {after}" if changed else f"Memory {pk} was like this already."
        return Result(data, text, look(pk))

    recall = memory_text.recall

    @verb
    def timed(
        self,
        *,
        days: int = arg(f"how far to look, 1 to 366 (default {DAYS})", within=(1, MOST_DAYS), default=DAYS),
        project: Project | None = project("a project's slug: that project plus global memories (default: all)"),
    ) -> Result:
        """Memories with a window of time: told now, and next."""
        scope = project.pk if project else ANY_PROJECT
        entries = upcoming(usable(scope, ANY_AGENT).select_related("project"), timezone.now(), days=days)
        data = [
            {
                "memory": memory,
                "open": one.is_open,
                "start": one.opening and one.opening[0],
                "end": one.opening and one.opening[1],
            }
            for memory, one in zip(all_as_data([one.memory for one in entries]), entries, strict=True)
        ]
        return Result(data, memory_text.timed_table(entries, f"No memory has a window in the next {days} days."))

    @verb
    def decay(self, *, dry_run: bool = DRY_RUN) -> Result:
        """Take what time takes, now (workers do it every hour, sessions before they begin)."""
        with transaction.atomic() if dry_run else nullcontext():
            swept = sweep(timezone.now())
            if dry_run:
                transaction.set_rollback(True)
        words = f"{swept.decayed:,} decayed, {swept.deactivated:,} of them now inactive; {swept.expired:,} expired."
        return Result(swept, f"Would be: {words}" if dry_run else words)

    @verb
    def reclassify(
        self,
        *,
        taxonomy: str = arg("the taxonomy with a new version", choices=[KNOWLEDGE.slug]),
        dry_run: bool = arg("only say what would change; asks no model"),
        by: str = by("the actor of the changes (default: your account)"),
    ) -> Result:
        """Choose the categories of a taxonomy anew, after it got a new version."""

        def progress(done: Reclassified) -> None:
            self.stderr.write(f"{done.changed + done.same + done.people:,} of {done.due:,}")

        done = reclassify(dry_run=dry_run, by=by, progress=None if self.as_json else progress)
        words = (
            f"{_memories(done.due)} of an older version: {done.changed:,} with another category, {done.same:,} with "
            f"the same, {done.people:,} whose category a person chose, {done.waiting:,} left to the classifier."
        )
        lines = [f"Would be: {words}" if dry_run else words]
        lines += [f"  {move}: {count:,}" for move, count in sorted(done.moves.items())]
        if done.why:
            lines.append(f"The classifier gave no answer: {done.why}. Run it again for the rest.")
        return Result(done, "\n".join(lines))

    @verb
    def rebuild(
        self,
        *,
        from_git: bool = arg("from the MEMORY.md files in git", required=True),
        project: Project | None = project("that project's file (default: all of this host)"),
        dry_run: bool = arg("only say what would be brought back"),
        by: str = by(),
    ) -> Result:
        """Bring back what the MEMORY.md files hold, when the database is lost; twice changes nothing."""
        results = rebuild.rebuild(project, everything=not project, by=by, dry_run=dry_run)
        names = ("file", "commits", "proposals", "memories", "known", "problem")
        cells = {"known already" if name == "known" else name: name for name in names}
        text = listing(results, cells, "This host has no MEMORY.md.")
        return Result(results, f"{text}\nNothing was stored (--dry-run)." if dry_run else text)

    held = stopped.held
    discarded = stopped.discarded

    @verb
    def status(self) -> Result:
        """How many memories there are, and in what state."""
        rows = Memory.objects.order_by()
        allowed = rows.filter(verdict=Verdict.ALLOW)
        data: dict[str, Any] = {
            "memories": rows.count(),
            "active": allowed.filter(active=True).count(),
            "held": rows.awaiting_review().count(),
            "trust": trust.mode(),
            "unconfirmed": rows.unconfirmed().count(),
            "persistent": rows.filter(persistent=True).count(),
            "inactive": _counts(allowed.filter(active=False), "inactive_reason"),
            "categories": _counts(allowed.filter(active=True, taxonomy="ops"), "category"),
            "sweep_is_due": is_due(),
            "tiers": {},
        }
        lines = [
            f"{_memories(data['memories'])}: {data['active']:,} active, {sum(data['inactive'].values()):,} inactive, "
            f"{data['held']:,} held for review; {data['persistent']:,} never decay.",
            f"Trust is {data['trust']}: {_memories(data['unconfirmed'])} unconfirmed, kept out of prompts.",
        ]
        lines += [f"  inactive, {reason or 'no reason given'}: {count:,}" for reason, count in data["inactive"].items()]
        lines += [f"  active, {category}: {count:,}" for category, count in data["categories"].items()]
        for tier in TIERS:
            injection = ops.build(budget=ops.budget_for(), at=timezone.now())
            data["tiers"][tier] = {"budget": injection.budget, "tokens": injection.tokens, "counts": injection.counts}
            lines.append(
                f"Tier {tier} is told {injection.counts['included']:,} of {_memories(injection.counts['eligible'])}, "
                f"{injection.tokens:,} of {injection.budget:,} tokens."
            )
        if data["sweep_is_due"]:
            lines.append("Some are due to age; the next session, or memory decay, sees to it.")
        see = {"manage.py memory list --held": "see what waits for review"} if data["held"] else {}
        if data["unconfirmed"]:
            see["manage.py memory list --unconfirmed"] = "see what waits for a confirmation"
        return Result(data, "\n".join(lines), see)

    @verb
    def export(self, file: str = arg("default: stdout", default="-")) -> Result:
        """Write all memories as JSON Lines."""
        count = self.export_lines(
            export_lines(Memory.objects.all()), file, lambda path: path.open("w", encoding="utf-8")
        )
        if count is None:
            return Result(None)
        text = f"{_memories(count)} {'is' if count == 1 else 'are'} in {file}."
        return Result({"file": file, "memories": count}, text)

    @verb
    def import_(
        self,
        file: str = arg("what export wrote; - reads stdin"),
        *,
        trust: bool = arg("take also rows that this installation did not sign as they are, without the gate"),
        why: Why,
    ) -> Result:
        """Read memories that export wrote; the same file twice changes nothing."""
        with reading(file) as lines:
            result = import_lines(lines, trust=trust, **vars(why))
        words = {
            "created": "imported",
            "held": "held for review",
            "known": "known already",
            "same_text": "say what an active memory says",
            "discarded": "say nothing",
            "purged": "left out, since a person had their texts purged here",
        }
        counts = [f"{getattr(result, name):,} {text}" for name, text in words.items() if getattr(result, name)]
        text = f"{', '.join(counts) or 'There was no memory in it'}."
        if result.projects:
            text += f" New projects: {', '.join(result.projects)}."
        if result.judged:
            text += (
                f" {_memories(result.judged)} without a signature of this installation went through the gate as "
                "imports; --trust takes such rows as they are."
            )
        return Result(result, text)

    @verb
    def promote(self, ids: Sequence[Memory] = memories("numbers or UUIDs of project memories"), *, why: Why) -> Result:
        """Make memories of a project ones of all projects."""
        with transaction.atomic():
            changes = {one.pk: verbs.promote(one.pk, **vars(why)) for one in ids}
        moved = [pk for pk, change in changes.items() if change is not None]
        rest = len(changes) - len(moved)
        text = f"{_memories(len(moved))} promoted to all projects"
        text += f"; {rest:,} were of all already." if rest else "."
        return Result({"promoted": moved, "unchanged": rest}, text, look(moved[0]) if moved else {})

    @verb
    def copy(
        self,
        ids: Sequence[Memory] = memories("numbers or UUIDs of project memories"),
        *,
        to: str = arg("the project that gets the copies", metavar="SLUG"),
        why: Why,
    ) -> Result:
        """Copy memories to another project, with their history."""
        copies = copy_to(ids, find_project(to), **vars(why))
        rest = sum(not one.created for one in copies)
        text = f"{_memories(len(copies) - rest)} copied to {to}"
        text += f"; {rest:,} known there already." if rest else "."
        return Result(copies, text, look(copies[0].memory_id))


def delete_inactive(days: int, *, erase: bool, yes: bool, by: str, reason: str) -> Result:
    """Delete inactive memories that were not confirmed for so many days; without `yes` only say how many."""
    if days < 0:
        raise Refusal("usage", f"--inactive-days is {days}; allowed is 0 or more.")
    rows = Memory.objects.filter(active=False, updated_at__lte=timezone.now() - timedelta(days=days))
    if not yes:
        count = rows.count()
        text = f"{_memories(count)} would be deleted. Add --yes to do it."
        return Result({"deleted": 0, "would_delete": count}, text)
    if erase:
        count = erase_all(rows)
        return Result({"deleted": count, "would_delete": 0}, f"{_memories(count)} erased with their history.")
    result = BULK_ACTIONS["delete"].run(rows, by=by, reason=reason)
    return Result({"deleted": result.changed, "would_delete": 0}, result.message)


def _end_of(day: str) -> datetime | None:
    if day == "never":
        return None
    try:
        return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise Refusal("usage", f"--expires is {day!r}; allowed is a day like 2026-12-31, or never.") from None


def _memories(count: int) -> str:
    return quantity(count, "memory", "memories")


def _counts(rows: QuerySet[Memory], column: str) -> dict[str, int]:
    return dict(rows.values_list(column).annotate(count=Count("pk")).order_by(column))
