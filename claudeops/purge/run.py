"""Plan a purge, carry it out step by step, and go on behind the last finished step after a crash.

One process at a time has a purge: a conditional UPDATE claims it. A step that was interrupted runs again. The texts are
kept in the row until nothing more is to be searched for; the receipt has none of them.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from claudeops.purge import columns, files, memory_files, rows
from claudeops.purge.choice import Choice, Chosen, PurgeError, batches, choose
from claudeops.purge.needles import Needles
from claudeops.secret_scan import leftovers
from memories.lifecycle import forgotten
from memories.models import Fact, Memory, Transcript
from memories.recall import keyword_index
from memories.telemetry.record import record
from sessions_app.models import Injected, Purge, PurgeState, PurgeStep, Session

PLANNED_FOR = timedelta(days=1)
"""How long a plan with a text waits for its confirmation."""
LEASE = timedelta(minutes=30)
"""A claim older than this is void: each batch renews it, and rewriting a large database takes minutes."""
NAMED = 20
"""Files and sessions that a message names at most."""


@dataclass(slots=True)
class Plan:
    """What a purge would remove: `places` counts by table, "table.column" or kind of file.

    `copies` are backups that may hold the texts, `outside` files that are a person's, `elsewhere` other hosts whose
    sessions' logs may hold them, `running` sessions that may write them again, `too_short` the texts that are not
    looked for, `kept` what stands in names and keys, `examples` where a short text stands, as in Needles.
    """

    memories: int = 0
    texts: int = 0
    places: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    copies: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    too_short: int = 0
    examples: list[str] = field(default_factory=list)


def plan(choice: Choice) -> Plan:
    """Count what a purge would remove. Writes nothing."""
    chosen = choose(choice)
    needles = chosen.needles()
    found = rows.counts(chosen)
    if needles:
        found |= columns.held(needles, rows.deleted(chosen))
        found |= files.scrub(needles, write=False).counts
        found["agent files, lines"] = memory_files.remove_lines(needles, write=False).count
        found["MEMORY.md, entries"] = memory_files.remove(needles, by="", write=False).count
    made = _about(chosen, needles)
    made.places, made.kept = _apart(+found)
    made.examples = needles.examples
    return made


def _about(chosen: Chosen, needles: Needles) -> Plan:
    """Return a plan without counts."""
    sessions = _sessions_of(chosen)
    return Plan(
        memories=len(chosen.memories),
        texts=len(needles.all),
        copies=[path.name for path in files.copies(chosen.since)],
        outside=_outside(chosen, needles),
        elsewhere=sorted({host for _, host, _, _ in sessions if host and host != settings.CLAUDEOPS_HOST}),
        running=sorted(pk for pk, _, _, status in sessions if status == "running"),
        too_short=needles.too_short,
    )


def _apart(counts: Counter[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return (what is removed, what is kept because it is a name)."""
    kept = {name.removeprefix("kept "): count for name, count in sorted(counts.items()) if name.startswith("kept ")}
    return {name: count for name, count in sorted(counts.items()) if not name.startswith("kept ")}, kept


def _sessions_of(chosen: Chosen) -> list[tuple[int, str, str, str]]:
    """Return (id, host, id of the CLI, status) of the sessions that said a memory, or were told one."""
    ids = set(chosen.sessions)
    for batch in batches(chosen.memories):
        ids.update(Memory.objects.filter(pk__in=batch).exclude(session=None).values_list("session", flat=True))
        ids.update(Injected.objects.filter(memory_id__in=batch).values_list("session", flat=True))
    found: list[tuple[int, str, str, str]] = []
    for batch in batches(sorted(ids)):
        found += Session.objects.filter(pk__in=batch).values_list("pk", "host", "cli_session_id", "status")
    return found


def _outside(chosen: Chosen, needles: Needles) -> list[str]:
    if not needles:
        return []
    paths: set[str] = set()
    for batch in batches(chosen.memories):
        facts = Fact.objects.filter(memory__in=batch, segment__transcript__host=settings.CLAUDEOPS_HOST)
        paths.update(facts.values_list("segment__transcript__path", flat=True))
    here = Transcript.objects.filter(host=settings.CLAUDEOPS_HOST)
    paths.update(here.filter(session__in=chosen.sessions).values_list("path", flat=True))
    return files.outside(paths, (name for _, _, name, _ in _sessions_of(chosen) if name), needles)


def ask(choice: Choice, *, by: str, at: datetime | None = None) -> Purge:
    """Store a purge that somebody is to confirm. A query is kept in its `work` until then, or for PLANNED_FOR."""
    choose(choice)
    work = {"query": choice.query} if choice.query else {}
    return Purge.objects.create(by=by[:150], chosen=choice.without_text(), work=work, created_at=at or timezone.now())


def drop_old(at: datetime | None = None) -> int:
    """Forget plans with a text that nobody confirmed in time; returns how many."""
    old = Purge.objects.filter(state=PurgeState.PLANNED, created_at__lt=(at or timezone.now()) - PLANNED_FOR)
    return old.exclude(work={}).delete()[0]


def choice_of(purge: Purge) -> Choice:
    return Choice(**purge.chosen | ({"query": purge.work["query"]} if "query" in purge.work else {}))


def count(pk: int) -> None:
    """Count what a planned purge would remove, for the page that asks for its confirmation. Once, if run twice."""
    purge = Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).first()
    if purge is None or "plan" in purge.receipt:
        return
    try:
        made = asdict(plan(choice_of(purge)))
    except PurgeError as error:
        Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).update(problem=f"{error} {error.fix}".strip()[:500])
        return
    examples = made.pop("examples")
    work = purge.work | ({"examples": examples} if examples else {})
    Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).update(receipt={"plan": made}, work=work)


def begin(choice: Choice, *, by: str, backups: bool = False, force: bool = False, at: datetime | None = None) -> Purge:
    """Store a purge that is to be carried out. Raises PurgeError while a session runs that may write a text again.

    `backups`: also remove the backups that may hold the texts. `force`: although such a session runs; what it still
    writes keeps the purge from being done.
    """
    chosen, receipt = _ready(choice, backups=backups, force=force)
    with transaction.atomic():
        purge = Purge.objects.create(by=by[:150], chosen=choice.without_text(), created_at=at or timezone.now())
        return _begun(purge, chosen, receipt)


def confirm(pk: int, *, by: str, backups: bool = False, force: bool = False) -> Purge:
    """Have a planned purge carried out, as `begin` does. Raises PurgeError when it is planned no more."""
    purge = Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).first()
    if purge is None:
        raise PurgeError("confirmed", f"Purge {pk} was confirmed or dropped already.")
    chosen, receipt = _ready(choice_of(purge), backups=backups, force=force)
    with transaction.atomic():
        if not Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).update(by=by[:150], problem=""):
            raise PurgeError("confirmed", f"Purge {pk} was confirmed or dropped already.")
        return _begun(purge, chosen, receipt)


def drop(pk: int) -> bool:
    """Forget a planned purge; False when it is planned no more."""
    return bool(Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).delete()[0])


def _ready(choice: Choice, *, backups: bool, force: bool) -> tuple[Chosen, dict[str, Any]]:
    """Return what is to be forgotten, and the beginning of the receipt."""
    chosen = choose(choice)
    if not (chosen.memories or chosen.sessions or chosen.texts or chosen.person):
        raise PurgeError("nothing", "Nothing is chosen: there is no such memory.")
    about = _about(chosen, chosen.needles())
    if about.running and not force:
        named = ", ".join(map(str, about.running[:NAMED]))
        raise PurgeError(
            "running",
            f"Sessions run that know it, and would write it again: {named}.",
            "Wait for their end, stop them with manage.py session stop, or add --force.",
        )
    return chosen, {
        "memories": about.memories,
        "texts": about.texts,
        "outside": about.outside,
        "elsewhere": about.elsewhere,
        "too_short": about.too_short,
        "backups": backups,
        "host": settings.CLAUDEOPS_HOST,
    }


def _begun(purge: Purge, chosen: Chosen, receipt: dict[str, Any]) -> Purge:
    purge.state, purge.work, purge.receipt = PurgeState.RUNNING, asdict(chosen), receipt
    purge.save(update_fields=["state", "work", "receipt"])
    forgotten.forget((needle.text for needle in chosen.needles().all), purge.pk, at=purge.created_at)
    PurgeStep.objects.bulk_create(
        [PurgeStep(purge=purge, name=name, position=place) for place, name in enumerate(STEPS, 1)]
    )
    return purge


def unfinished(host: str = "") -> list[int]:
    """Return the ids of purges that were begun (on `host`, whose files they are about) and are not done."""
    begun = Purge.objects.filter(state=PurgeState.RUNNING).order_by("pk")
    if host:
        begun = begun.filter(receipt__host=host)
    return list(begun.values_list("pk", flat=True))


def carry_out(pk: int, *, at: datetime | None = None) -> Purge:
    """Carry out a purge from its first unfinished step on. Raises PurgeError when another process does, or it cannot.

    Not inside a transaction. What keeps it from being done stands in its `problem`, too.
    """
    me = f"{settings.CLAUDEOPS_HOST}:{os.getpid()}"
    if not _claim(pk, me, at or timezone.now()):
        purge = Purge.objects.filter(pk=pk).first()
        if purge is None:
            raise PurgeError("purge_not_found", f"There is no purge {pk}.")
        if purge.state == PurgeState.DONE:
            return purge
        raise PurgeError("busy", f"Purge {pk} is carried out by another process.", "Wait for it.")
    begun = time.monotonic()
    try:
        for step in PurgeStep.objects.filter(purge=pk, done_at=None).order_by("position"):
            STEPS[step.name][1](_Step(step, me))
            step.done_at = at or timezone.now()
            step.save(update_fields=["done_at"])
        _finish(pk, me, int((time.monotonic() - begun) * 1000), at or timezone.now())
    except PurgeError as error:
        _let_go(pk, me, f"{error} {error.fix}".strip())
        raise
    except Exception as error:
        _let_go(pk, me, f"It was interrupted by {type(error).__name__}.")  # the message may hold a text
        raise
    return Purge.objects.get(pk=pk)


def _claim(pk: int, me: str, at: datetime) -> bool:
    row = Purge.objects.filter(pk=pk, state=PurgeState.RUNNING).values_list("claimed_by", flat=True).first()
    if row is None:
        return False
    free = Q(claimed_until=None) | Q(claimed_until__lt=at)
    if row and _is_dead(row):
        free |= Q(claimed_by=row)
    mine = Purge.objects.filter(free, pk=pk, state=PurgeState.RUNNING)
    return bool(mine.update(claimed_by=me, claimed_until=at + LEASE, problem=""))


def _is_dead(claimed_by: str) -> bool:
    """Whether the claim is of a process of this host that is gone."""
    host, _, pid = claimed_by.rpartition(":")
    if host != settings.CLAUDEOPS_HOST or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _let_go(pk: int, me: str, problem: str) -> None:
    Purge.objects.filter(pk=pk, claimed_by=me).update(claimed_by="", claimed_until=None, problem=problem[:500])


class _Step:
    """One step that runs: its purge, its texts, and where it is."""

    def __init__(self, row: PurgeStep, me: str) -> None:
        self.row, self.me = row, me
        self.purge = Purge.objects.get(pk=row.purge_id)
        self.chosen = Chosen(**self.purge.work)
        self.needles = self.chosen.needles()

    def note(self, counts: Counter[str], file: str = "") -> None:
        """Store what the step removed (at which file), in the transaction that removes it. Renews the claim."""
        until = timezone.now() + LEASE
        if not Purge.objects.filter(pk=self.purge.pk, claimed_by=self.me).update(claimed_until=until):
            raise PurgeError("busy", f"Purge {self.purge.pk} was taken over by another process.")
        self.row.counts = dict(Counter(self.row.counts) + counts)
        self.row.cursor = {"file": file} if file else {}
        self.row.save(update_fields=["cursor", "counts"])

    def tell(self, **facts: Any) -> None:
        """Put facts into the receipt."""
        self.purge.receipt |= facts
        self.purge.save(update_fields=["receipt"])


def _agent_files(step: _Step) -> None:
    made = memory_files.remove_lines(step.needles, write=True)
    step.note(Counter({"agent files, lines": made.count}))
    step.tell(files_left=[f"{name}: {why}" for name, why in made.left.items()])


def _rows(step: _Step) -> None:
    rows.remove(step.chosen, step.note)


def _memory_files(step: _Step) -> None:
    if step.needles:
        made = memory_files.remove(step.needles, by=step.purge.by, write=True)
        step.note(Counter({"MEMORY.md, entries": made.count}))
        left = [*step.purge.receipt.get("files_left", ()), *(f"{name}: {why}" for name, why in made.left.items())]
        step.tell(history=made.history, files_left=list(dict.fromkeys(left)))


def _columns(step: _Step) -> None:
    if step.needles:
        columns.scrub(step.needles, write=True, note=step.note)


def _files(step: _Step) -> None:
    if step.needles:
        first = step.row.cursor.get("file", "")
        files.scrub(step.needles, write=True, first=first, before=lambda name, counts: step.note(counts, name))


def _copies(step: _Step) -> None:
    """Remove the backups, or name them in the receipt."""
    found = files.copies(step.chosen.since)
    if step.purge.receipt.get("backups"):
        for path in found:
            shutil.rmtree(path)
            step.note(Counter({"backups": 1}))
        found = []
    step.tell(copies=[str(path) for path in found])


def _check(step: _Step) -> None:
    """Search everything once more. Raises PurgeError, and lets the search begin anew, when a text is left."""
    if not step.needles:
        return
    found, kept = _apart(columns.held(step.needles))
    in_files = files.scrub(step.needles, write=False)
    step.tell(kept=kept)
    left = [*found, *in_files.counts, *(f"{name} ({why})" for name, why in in_files.left.items())]
    if left:
        PurgeStep.objects.filter(purge=step.purge, name__in=AGAIN).update(done_at=None, cursor={})
        named = ", ".join(left[:NAMED])
        raise PurgeError("left", f"Texts are left, or were written again: {named}.", "Go on: memory purge --resume.")


def _emptied(step: _Step) -> None:
    """Forget the texts, also those of plans that nobody confirmed yet; what follows needs none."""
    planned = Purge.objects.filter(state=PurgeState.PLANNED).exclude(work={})
    same = [purge.pk for purge in planned if step.needles.are_in(purge.work)]
    Purge.objects.filter(pk__in=same).delete()
    Purge.objects.filter(pk=step.purge.pk).update(work={})
    Purge.objects.filter(pk=step.purge.pk).exclude(problem="").update(problem="")


def _free(step: _Step) -> None:
    """Bring the indexes in step, and rewrite free pages, so that no byte of a deleted row is left in SQLite's files."""
    keyword_index.catch_up()
    if step.purge.receipt.get("memories"):
        for path in (files.data_folder() / "vectors").glob("*.bits"):  # made anew from the vectors that are left
            path.unlink(missing_ok=True)
    if problems := leftovers.remove():
        raise PurgeError("in_use", problems[0], "Go on: memory purge --resume.")


STEPS: dict[str, tuple[str, Callable[[_Step], None]]] = {
    "agent_files": ("lines of agents' files", _agent_files),
    "rows": ("memories and their rows", _rows),
    "memory_files": ("entries of MEMORY.md", _memory_files),
    "columns": ("texts in the database", _columns),
    "files": ("files of the data folder", _files),
    "copies": ("backups", _copies),
    "check": ("searched once more", _check),
    "emptied": ("the texts themselves", _emptied),
    "free": ("free pages", _free),
}
"""The steps in their order, each in words for people."""
AGAIN = ("agent_files", "memory_files", "columns", "files")
"""The steps that begin anew when the last search finds a text."""


def _finish(pk: int, me: str, took_ms: int, at: datetime) -> None:
    with transaction.atomic():
        purge = Purge.objects.select_for_update().get(pk=pk)
        removed = sum((Counter(step.counts) for step in purge.steps.all()), Counter[str]())
        purge.receipt["removed"], _ = _apart(removed)
        purge.save(update_fields=["receipt"])
        mine = Purge.objects.filter(pk=pk, state=PurgeState.RUNNING, claimed_by=me)
        if mine.update(state=PurgeState.DONE, done_at=at, claimed_by="", claimed_until=None, problem="", work={}):
            record(
                "memory.purge.completed",
                component="purge",
                source="claudeops",
                key=f"purge:{pk}",
                duration_ms=took_ms,
                at=at,
                memories=purge.receipt.get("memories", 0),
                removed=removed.total(),
            )
