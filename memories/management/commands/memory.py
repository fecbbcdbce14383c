"""`manage.py memory`: list, correct, recall, export and import memories."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO
from uuid import UUID

from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user, table
from memories.api.serializers import all_as_data, as_data, change_data
from memories.capture.fields import check_typed_confidence, checked_agent
from memories.curate import rebuild
from memories.errors import MemoryNotFound
from memories.exchange.copies import copy_to
from memories.exchange.import_export import export_lines, import_lines
from memories.injection import ops
from memories.injection.windows import MOST_DAYS, upcoming, usable
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.merge import erase_all
from memories.lifecycle.projects import find_project
from memories.lifecycle.sweep import is_due, sweep
from memories.management import arguments, held
from memories.management.describe import as_table, as_text, surfacing_table
from memories.management.recalling import recall
from memories.models import Memory, MemoryChange, Source, Verdict, trust
from memories.models.memory import ANY_AGENT, ANY_PROJECT
from memories.observe.categories import Reclassified, reclassify
from memories.queries.filters import HELD, UNCONFIRMED, MemoryFilterSet
from memories.store import Provenance, Statement, remember

TIERS = (1, 2, 3)


class Command(VerbCommand):
    help = "Memories: what the agents know."
    noun = "memory"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "add": Verb("Add a memory.", self.add, arguments.add),
            "list": Verb("Memories, the last confirmed first.", self.list, arguments.listing),
            "show": Verb("One memory with its history.", self.show, arguments.memory_id),
            "edit": Verb("Correct a memory; options that are not given change nothing.", self.edit, arguments.edit),
            "recall": Verb("Search what is known; --explain says why these.", self.recall, arguments.recall),
            "surfacing": Verb(
                "Memories with a window of time: told now, and next.", self.surfacing, arguments.surfacing
            ),
            "decay": Verb(
                "Take what time takes, now (workers do it every hour, sessions before they begin).",
                self.decay,
                arguments.decay,
            ),
            "reclassify": Verb(
                "Choose the categories of a taxonomy anew, after it got a new version.",
                self.reclassify,
                arguments.reclassify,
            ),
            "rebuild": Verb(
                "Bring back what the MEMORY.md files hold, when the database is lost; twice changes nothing.",
                self.rebuild,
                arguments.rebuild,
            ),
            "held": Verb(
                "What the gate held, with its source and the nearest known memory: list, allow, edit, discard, undo.",
                self.held,
                arguments.held,
            ),
            "discarded": Verb(
                "What the gate discarded in the last 14 days: list, allow, confirm.",
                self.discarded,
                arguments.discarded,
            ),
            "status": Verb("How many memories there are, and in what state.", self.status),
            "export": Verb("Write all memories as JSON Lines.", self.export, arguments.export),
            "import": Verb(
                "Read memories that export wrote; the same file twice changes nothing.", self.import_, arguments.import_
            ),
            "promote": Verb("Make memories of a project ones of all projects.", self.promote, arguments.promote),
            "copy": Verb("Copy memories to another project, with their history.", self.copy, arguments.copy),
            "purge": Verb(
                "Delete memories; their history stays, unless --erase is given.", self.purge, arguments.purge
            ),
        }
        self.as_json = False

    def handle(self, *args: Any, **options: Any) -> str | None:
        self.as_json = options.get("json", False)
        return super().handle(*args, **options)

    def add(self, observation: str, project: str | None, tag: list[str], persistent: bool, **given: Any) -> Result:
        by, reason = _who(given["by"]), given["reason"]
        statement = Statement(
            given["category"],
            sys.stdin.read() if observation == "-" else observation,
            given["service"],
            given["taxonomy"],
            given["confidence"],
            tuple(tag),
            surface=given["surface"],
        )
        agent = checked_agent(given["agent"] or "", given["taxonomy"])
        provenance = Provenance(Source.HUMAN, by, project_id=_project_id(project), agent=agent, channel="human")
        with transaction.atomic():
            stored = remember(statement, provenance).memory_id
            assert stored is not None  # noqa: S101  (a person's memory is stored or refused)
            if persistent:
                verbs.mark_persistent(stored, by=by, reason=reason)
        memory = _memory(str(stored))
        if given["confidence"] is not None and not 0 <= given["confidence"] <= 1:
            self.stderr.write(f"Confidence is a number from 0 to 1; {memory.confidence:g} was stored.")
        return Result(as_data(memory), f"Memory {stored} is stored: {memory}", _look(stored))

    def list(self, limit: int, **given: Any) -> Result:
        if not 1 <= limit <= arguments.MOST_LISTED:
            raise Refusal("usage", f"--limit is {limit}; allowed is 1 to {arguments.MOST_LISTED}.")
        rows = _narrowed(**given)
        count = rows.count()
        found = list(rows.select_related("project")[:limit])
        text = as_table(found) if found else "No memory matches."
        if count > len(found):
            text += f"\n{len(found):,} of {count:,}; --limit shows more."
        return Result({"count": count, "memories": all_as_data(found)}, text)

    def show(self, memory: str) -> Result:
        found = _memory(memory)
        changes = list(MemoryChange.objects.filter(memory=found))
        data = as_data(found) | {"history": [change_data(change) for change in changes]}
        return Result(data, as_text(found, changes))

    def edit(self, memory: str, expires: str | None, tag: Any, by: str, reason: str, **given: Any) -> Result:
        pk, why = _memory(memory).pk, dict[str, Any](by=_who(by), reason=reason)
        then = [name for name in ("deactivate", "reactivate", "approve") if given.pop(name)]
        check_typed_confidence(given["confidence"])
        fields = {name: value for name, value in given.items() if value is not None}
        if tag is not None:
            fields["tags"] = tag
        if expires is not None:
            fields["expires_at"] = _end_of(expires)
        if not fields and not then:
            raise Refusal("usage", "Nothing to change was given.", "manage.py memory edit --help lists what can be.")
        with transaction.atomic():
            typed = Provenance.typed_by(why["by"])
            changes = [verbs.edit(pk, provenance=typed, **fields, **why)] if fields else []
            changes += [getattr(verbs, name)(pk, **why) for name in then]
        changed = [change for change in changes if change is not None]
        after = _memory(str(pk))
        data = as_data(after) | {"changes": [change_data(change) for change in changed]}
        text = f"Memory {pk} is changed: {after}" if changed else f"Memory {pk} was like this already."
        return Result(data, text, _look(pk))

    def recall(self, **given: Any) -> Result:
        return recall(by=_who(""), **given)

    def surfacing(self, days: int, project: str | None) -> Result:
        if not 1 <= days <= MOST_DAYS:
            raise Refusal("usage", f"--days is {days}; allowed is 1 to {MOST_DAYS}.")
        now, scope = timezone.now(), _project_id(project) if project else ANY_PROJECT
        found = upcoming(usable(scope, ANY_AGENT).select_related("project"), now, days=days)
        data = [
            {
                "memory": memory,
                "open": one.is_open,
                "start": one.opening and one.opening[0],
                "end": one.opening and one.opening[1],
            }
            for memory, one in zip(all_as_data([one.memory for one in found]), found, strict=True)
        ]
        return Result(data, surfacing_table(found) or f"No memory has a window in the next {days} days.")

    def decay(self, dry_run: bool) -> Result:
        now = timezone.now()
        with transaction.atomic() if dry_run else _nothing():
            swept = sweep(now)
            if dry_run:
                transaction.set_rollback(True)
        words = f"{swept.decayed:,} decayed, {swept.deactivated:,} of them now inactive; {swept.expired:,} expired."
        return Result(asdict(swept), f"Would be: {words}" if dry_run else words)

    def rebuild(self, from_git: bool, project: str | None, dry_run: bool, by: str) -> Result:
        wanted = find_project(project) if project else None
        done = rebuild.rebuild(wanted, everything=not project, by=_who(by), dry_run=dry_run)
        rows = [(one.file, one.commits, one.proposals, one.memories, one.known, one.problem) for one in done]
        text = table(["file", "commits", "proposals", "memories", "known already", "problem"], rows)
        if not done:
            text = "This host has no MEMORY.md."
        return Result([asdict(one) for one in done], f"{text}\nNothing was stored (--dry-run)." if dry_run else text)

    def reclassify(self, taxonomy: str, dry_run: bool, by: str) -> Result:
        def progress(done: Reclassified) -> None:
            self.stderr.write(f"{done.changed + done.same + done.people:,} of {done.due:,}")

        done = reclassify(dry_run=dry_run, by=_who(by), progress=None if self.as_json else progress)
        words = (
            f"{_number(done.due)} of an older version: {done.changed:,} with another category, {done.same:,} with the "
            f"same, {done.people:,} whose category a person chose, {done.waiting:,} left to the classifier."
        )
        lines = [f"Would be: {words}" if dry_run else words]
        lines += [f"  {move}: {count:,}" for move, count in sorted(done.moves.items())]
        if done.why:
            lines.append(f"The classifier gave no answer: {done.why}. Run it again for the rest.")
        return Result(asdict(done), "\n".join(lines))

    def held(
        self,
        action: str,
        ids: Any,
        because: str | None,
        observation: str | None,
        all_matching: bool,
        yes: bool,
        limit: int,
        by: str,
        reason: str,
        **given: Any,
    ) -> Result:
        if action == "undo":
            return held.undo(ids, by=_who(by), reason=reason)
        return held.held(
            _narrowed(inactive=False, held=True, unconfirmed=False, all=False, **given),
            action=action,
            ids=[_memory(one) for one in ids],
            code=because,
            observation=observation,
            all_matching=all_matching,
            yes=yes,
            limit=limit,
            by=_who(by),
            reason=reason,
        )

    def discarded(self, by: str, **given: Any) -> Result:
        return held.discarded(by=_who(by), **given)

    def status(self) -> Result:
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
            f"{_number(data['memories'])}: {data['active']:,} active, {sum(data['inactive'].values()):,} inactive, "
            f"{data['held']:,} held for review; {data['persistent']:,} never decay.",
            f"Trust is {data['trust']}: {_number(data['unconfirmed'])} unconfirmed, kept out of prompts.",
        ]
        lines += [f"  inactive, {reason or 'no reason given'}: {count:,}" for reason, count in data["inactive"].items()]
        lines += [f"  active, {category}: {count:,}" for category, count in data["categories"].items()]
        for tier in TIERS:
            made = ops.build(budget=ops.budget_for(), at=timezone.now())
            data["tiers"][tier] = {"budget": made.budget, "tokens": made.tokens, "counts": made.counts}
            lines.append(
                f"Tier {tier} is told {made.counts['included']:,} of {_number(made.counts['eligible'])}, "
                f"{made.tokens:,} of {made.budget:,} tokens."
            )
        if data["sweep_is_due"]:
            lines.append("Some are due to age; the next session, or memory decay, sees to it.")
        see = [NextAction("manage.py memory list --held", "see what waits for review")] if data["held"] else []
        if data["unconfirmed"]:
            see.append(NextAction("manage.py memory list --unconfirmed", "see what waits for a confirmation"))
        return Result(data, "\n".join(lines), see)

    def export(self, file: str) -> Result:
        lines = export_lines(Memory.objects.all())
        if file == "-":
            if self.as_json:
                raise Refusal("usage", "--json and an export to stdout do not go together.", "Name a FILE.")
            for line in lines:
                self.stdout.write(line)
            return Result(None)
        count = 0
        try:
            with Path(file).open("w", encoding="utf-8") as out:
                for count, line in enumerate(lines, start=1):  # noqa: B007
                    out.write(line + "\n")
        except OSError as error:
            raise Refusal("file", f"{file} cannot be written: {error.strerror}.") from error
        return Result({"file": file, "memories": count}, f"{_number(count)} {'is' if count == 1 else 'are'} in {file}.")

    def import_(self, file: str, trust: bool, by: str, reason: str) -> Result:
        with _reading(file) as lines:
            done = import_lines(lines, by=_who(by), reason=reason, trust=trust)
        words = {
            "created": "imported",
            "held": "held for review",
            "known": "known already",
            "same_text": "say what an active memory says",
            "discarded": "say nothing",
            "purged": "left out, since a person had their texts purged here",
        }
        counts = [f"{getattr(done, name):,} {text}" for name, text in words.items() if getattr(done, name)]
        text = ", ".join(counts) or "There was no memory in it"
        projects = f" New projects: {', '.join(done.projects)}." if done.projects else ""
        judged = ""
        if done.judged:
            judged = (
                f" {_number(done.judged)} without a signature of this installation went through the gate as imports; "
                "--trust takes such rows as they are."
            )
        return Result(asdict(done), f"{text}.{projects}{judged}")

    def promote(self, ids: Any, by: str, reason: str) -> Result:
        with transaction.atomic():
            changes = {pk: verbs.promote(pk, by=_who(by), reason=reason) for pk in (_memory(one).pk for one in ids)}
        moved = [pk for pk, change in changes.items() if change is not None]
        rest = len(changes) - len(moved)
        text = f"{_number(len(moved))} promoted to all projects" + (f"; {rest:,} were of all already." if rest else ".")
        return Result({"promoted": moved, "unchanged": rest}, text, _look(moved[0]) if moved else ())

    def copy(self, ids: Any, to: str, by: str, reason: str) -> Result:
        project = find_project(to)
        done = copy_to([_memory(one) for one in ids], project, by=_who(by), reason=reason)
        made = [one for one in done if one.created]
        rest = len(done) - len(made)
        text = f"{_number(len(made))} copied to {to}" + (f"; {rest:,} known there already." if rest else ".")
        return Result([asdict(one) for one in done], text, _look(done[0].memory_id))

    def purge(self, ids: Any, inactive_days: int | None, erase: bool, yes: bool, by: str, reason: str) -> Result:
        if bool(ids) == (inactive_days is not None):
            raise Refusal(
                "usage", "Give IDs or --inactive-days, one of the two.", "Example: memory purge --inactive-days 365"
            )
        if inactive_days is None:
            rows = Memory.objects.filter(pk__in=[_memory(one).pk for one in ids])
        elif inactive_days < 0:
            raise Refusal("usage", f"--inactive-days is {inactive_days}; allowed is 0 or more.")
        else:
            rows = Memory.objects.filter(active=False, updated_at__lte=timezone.now() - timedelta(days=inactive_days))
        if not yes:
            count = rows.count()
            text = f"{_number(count)} would be deleted. Add --yes to do it."
            return Result({"deleted": 0, "would_delete": count}, text)
        if erase:
            count = erase_all(rows)
            return Result({"deleted": count, "would_delete": 0}, f"{_number(count)} erased with their history.")
        result = BULK_ACTIONS["delete"].run(rows, by=_who(by), reason=reason)
        return Result({"deleted": result.changed, "would_delete": 0}, result.message)


def _narrowed(
    *,
    inactive: bool,
    held: bool,
    unconfirmed: bool,
    all: bool,  # noqa: A002
    **given: Any,
) -> QuerySet[Memory]:
    query = {name: value for name, value in given.items() if value is not None}
    if held or unconfirmed:
        query["status"] = HELD if held else UNCONFIRMED
    elif not all:
        query |= {"verdict": Verdict.ALLOW, "active": "false" if inactive else "true"}
    filters = MemoryFilterSet(query, queryset=Memory.objects.all())
    if not filters.is_valid():
        name, errors = next(iter(filters.errors.items()))
        raise Refusal("usage", f"--{name} is {query[name]!r}: {errors[0]}")
    found: QuerySet[Memory] = filters.qs
    return found


def _memory(given: str) -> Memory:
    key = {"pk": int(given)} if given.isdecimal() and len(given) < 19 else {"uuid": _uuid(given)}
    found = Memory.objects.select_related("project").filter(**key).first()
    if found is None:
        raise MemoryNotFound(f"There is no memory {given}.", "List memories: manage.py memory list")
    return found


def _uuid(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise MemoryNotFound(f"{given!r} is neither a number nor a UUID of a memory.") from None


def _project_id(slug: str | None) -> int | None:
    return None if slug is None else find_project(slug).pk


def _end_of(day: str) -> datetime | None:
    if day == "never":
        return None
    try:
        return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise Refusal("usage", f"--expires is {day!r}; allowed is a day like 2026-12-31, or never.") from None


@contextmanager
def _reading(file: str) -> Iterator[TextIO]:
    if file == "-":
        yield sys.stdin
        return
    try:
        with Path(file).open(encoding="utf-8") as opened:
            yield opened
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Refusal("file", f"{file} cannot be read: {why}.") from error


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _number(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def _counts(rows: QuerySet[Memory], column: str) -> dict[str, int]:
    return dict(rows.values_list(column).annotate(count=Count("pk")).order_by(column))


def _look(pk: int) -> list[NextAction]:
    return [NextAction(f"manage.py memory show {pk}", "see it with its history")]


def _who(given: str) -> str:
    return given or current_user()
