"""Plan a purge, and carry it out step by step.

One process at a time carries out a purge. One that was interrupted begins anew: each step finds less then. The texts
are kept in the row until nothing more is to be searched for; the receipt has none of them.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from claudeops.features.purge import columns, files, memory_files, rows
from claudeops.features.purge.choice import Choice, Chosen, PurgeError, batches, choose
from claudeops.features.secret_scan.columns import remove_leftovers
from claudeops.lib.locks import single_flight
from memories.library import journal
from memories.lifecycle import forgotten
from memories.models import Memory, Transcript
from memories.recall import keyword_index
from memories.telemetry import record
from sessions_app.models import Injected, Purge, PurgeState, Session

PLANNED_FOR = timedelta(days=1)
"""How long a plan with a text waits for its confirmation."""
LOCK_KEY = 0x636C_7075_7267_0000  # any fixed number, to which that of the purge is added; it spells "clpurg"
NAMED = 20
"""Files and sessions that a message names at most."""


def plan(choice: Choice) -> dict[str, Any]:
    """Count what a purge would remove. Writes nothing.

    Beside what `_about` says: `places` counts by table, "table.column" or kind of file, `kept` what stands in names and
    keys, `examples` are where a short text stands, as in Needles.
    """
    chosen = choose(choice)
    needles = chosen.needles()
    totals = rows.counts(chosen) | columns.held(needles, rows.deleted(chosen))
    totals |= files.scrub(needles, write=False).counts
    totals["agent files, lines"] = memory_files.remove_lines(needles, write=False).count
    totals["MEMORY.md, entries"] = memory_files.remove(needles, by="", write=False).count
    places, remains = _apart(+totals)
    return {**_about(chosen), "places": places, "kept": remains, "examples": needles.examples}


def _about(chosen: Chosen) -> dict[str, Any]:
    """Return how many `memories` and `texts` go, and how many are `too_short` to be looked for.

    `copies` are backups that may hold the texts, `outside` files that are a person's, `elsewhere` other hosts whose
    sessions' logs may hold them, `running` sessions that may write them again.
    """
    needles, host = chosen.needles(), settings.CLAUDEOPS_HOST
    ids, transcripts = set(chosen.sessions), Transcript.objects.filter(host=host)
    paths = set(transcripts.filter(session__in=chosen.sessions).values_list("path", flat=True))
    for batch in batches(chosen.memories):
        ids.update(Memory.objects.filter(pk__in=batch).exclude(session=None).values_list("session", flat=True))
        ids.update(Injected.objects.filter(memory_id__in=batch).values_list("session", flat=True))
        paths.update(transcripts.filter(segments__facts__memory__in=batch).values_list("path", flat=True))
    sessions: list[tuple[int, str, str, str]] = []
    for batch in batches(sorted(ids)):
        sessions += Session.objects.filter(pk__in=batch).values_list("pk", "host", "cli_session_id", "status")
    return {
        "memories": len(chosen.memories),
        "texts": len(needles.all),
        "copies": [path.name for path in files.copies(chosen.since)],
        "outside": files.outside(paths, (name for _, _, name, _ in sessions if name), needles),
        "elsewhere": sorted({one for _, one, _, _ in sessions if one and one != host}),
        "running": sorted(pk for pk, _, _, status in sessions if status == "running"),
        "too_short": needles.too_short,
    }


def _apart(counts: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return (what is removed, what is kept because it is a name)."""
    remains = {name.removeprefix("kept "): count for name, count in sorted(counts.items()) if name.startswith("kept ")}
    return {name: count for name, count in sorted(counts.items()) if not name.startswith("kept ")}, remains


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
        preview = plan(choice_of(purge))
    except PurgeError as error:
        Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).update(problem=f"{error} {error.fix}".strip()[:500])
        return
    examples = preview.pop("examples")
    work = purge.work | ({"examples": examples} if examples else {})
    Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).update(receipt={"plan": preview}, work=work)


def begin(choice: Choice, *, by: str, backups: bool = False, force: bool = False, at: datetime | None = None) -> Purge:
    """Store a purge that is to be carried out. Raises PurgeError while a session runs that may write a text again.

    `backups`: also remove the backups that may hold the texts. `force`: although such a session runs; what it still
    writes keeps the purge from being done.
    """
    with transaction.atomic():
        return confirm(ask(choice, by=by, at=at).pk, by=by, backups=backups, force=force)


def confirm(pk: int, *, by: str, backups: bool = False, force: bool = False) -> Purge:
    """Have a planned purge carried out, as `begin` does. Raises PurgeError when it is planned no more."""
    planned = Purge.objects.filter(pk=pk, state=PurgeState.PLANNED)
    purge, gone = planned.first(), PurgeError("confirmed", f"Purge {pk} was confirmed or dropped already.")
    if purge is None:
        raise gone
    chosen = choose(choice_of(purge))
    if not (chosen.memories or chosen.sessions or chosen.texts or chosen.person):
        raise PurgeError("nothing", "Nothing is chosen: there is no such memory.")
    about = _about(chosen)
    if about["running"] and not force:
        named = ", ".join(map(str, about["running"][:NAMED]))
        raise PurgeError(
            "running",
            f"Sessions run that know it, and would write it again: {named}.",
            "Wait for their end, stop them with manage.py session stop, or add --force.",
        )
    receipt = {name: about[name] for name in ("memories", "texts", "outside", "elsewhere", "too_short")}
    receipt |= {"backups": backups, "host": settings.CLAUDEOPS_HOST}
    with transaction.atomic():
        begun = {"state": PurgeState.RUNNING, "work": asdict(chosen), "receipt": receipt}
        if not planned.update(by=by[:150], problem="", **begun):
            raise gone
        forgotten.forget((needle.text for needle in chosen.needles().all), pk, at=purge.created_at)
    purge.refresh_from_db()
    return purge


def drop(pk: int) -> bool:
    """Forget a planned purge; False when it is planned no more."""
    return bool(Purge.objects.filter(pk=pk, state=PurgeState.PLANNED).delete()[0])


def unfinished(host: str = "") -> list[int]:
    """Return the ids of purges that were begun (on `host`, whose files they are about) and are not done."""
    begun = Purge.objects.filter(state=PurgeState.RUNNING).order_by("pk")
    if host:
        begun = begun.filter(receipt__host=host)
    return list(begun.values_list("pk", flat=True))


def carry_out(pk: int, *, at: datetime | None = None) -> Purge:
    """Carry out a purge, all of it again when it was interrupted. Raises PurgeError when it cannot, or another does.

    Not inside a transaction. What keeps it from being done stands in its `problem`, too.
    """
    lock = files.data_folder() / f"purge-{pk}.lock"
    with single_flight(LOCK_KEY + pk, lock) as only:
        purge = Purge.objects.exclude(state=PurgeState.PLANNED).filter(pk=pk).first()
        if purge is None:
            raise PurgeError("purge_not_found", f"There is no purge {pk}.")
        if purge.state == PurgeState.DONE:
            return purge
        if not only:
            raise PurgeError("busy", f"Purge {pk} is carried out by another process.", "Wait for it.")
        try:
            _Run(purge).all_steps(at)
            journal.note(
                "purge", "memories", f"Purge {pk} was carried out.", key=f"purge {purge.pk} {purge.created_at}"
            )
        except Exception as error:
            problem = f"It was interrupted by {type(error).__name__}."  # its message may hold a text
            if isinstance(error, PurgeError):
                problem = f"{error} {error.fix}".strip()
            Purge.objects.filter(pk=pk).update(problem=problem[:500])
            raise
    lock.unlink(missing_ok=True)
    return purge


STEPS = {
    "agent_files": "lines of agents' files",
    "rows": "memories and their rows",
    "memory_files": "entries of MEMORY.md",
    "columns": "texts in the database",
    "files": "files of the data folder",
    "copies": "backups",
    "check": "searched once more",
    "emptied": "the texts themselves",
    "free": "free pages",
}
"""The steps in their order, each in words for people: methods of _Run, each of which may run again."""


class _Run:
    """A purge that is carried out, and its texts."""

    def __init__(self, purge: Purge) -> None:
        self.purge = purge
        self.chosen = Chosen(**purge.work)
        self.needles = self.chosen.needles()

    def all_steps(self, at: datetime | None) -> None:
        begun, purge = time.monotonic(), self.purge
        purge.problem = ""
        purge.receipt["steps"] = {} if purge.work else purge.receipt.get("steps", {})
        purge.save(update_fields=["problem", "receipt"])
        for name in STEPS:
            if purge.work or name == "free":  # what follows the emptying needs no text
                getattr(self, name)()
                self.tell(steps={**purge.receipt["steps"], name: (at or timezone.now()).isoformat()})
        purge.state, purge.done_at = PurgeState.DONE, at or timezone.now()
        purge.receipt.pop("file", None)
        purge.receipt["removed"], _ = _apart(purge.receipt.get("removed", {}))
        with transaction.atomic():
            purge.save(update_fields=["state", "done_at", "receipt"])
            record(
                "memory.purge.completed",
                component="purge",
                source="claudeops",
                key=f"purge:{purge.pk}",
                duration_ms=int((time.monotonic() - begun) * 1000),
                at=purge.done_at,
                memories=purge.receipt.get("memories", 0),
                removed=sum(purge.receipt["removed"].values()),
            )

    def tell(self, **facts: Any) -> None:
        """Put facts into the receipt."""
        self.purge.receipt |= facts
        self.purge.save(update_fields=["receipt"])

    def note(self, counts: Counter[str], file: str = "") -> None:
        """Put into the receipt what was removed (from which file), in the transaction that removes it."""
        removed = Counter(self.purge.receipt.get("removed", {})) + Counter(_apart(counts)[0])
        self.tell(removed=dict(removed), file=file)

    def agent_files(self) -> None:
        report = memory_files.remove_lines(self.needles, write=True)
        self.note(Counter({"agent files, lines": report.count}))
        self.tell(files_left=[f"{name}: {why}" for name, why in report.left.items()])

    def rows(self) -> None:
        rows.remove(self.chosen, self.note)

    def memory_files(self) -> None:
        report = memory_files.remove(self.needles, by=self.purge.by, write=True)
        self.note(Counter({"MEMORY.md, entries": report.count}))
        failures = [f"{name}: {why}" for name, why in report.left.items()]
        self.tell(history=report.history, files_left=[*self.purge.receipt["files_left"], *failures])

    def columns(self) -> None:
        columns.scrub(self.needles, write=True, note=self.note)

    def files(self) -> None:
        first = self.purge.receipt.get("file", "")
        files.scrub(self.needles, write=True, first=first, before=lambda name, counts: self.note(counts, name))

    def copies(self) -> None:
        """Remove the backups, or name them in the receipt."""
        paths = files.copies(self.chosen.since)
        if self.purge.receipt["backups"]:
            for path in paths:
                shutil.rmtree(path)
                self.note(Counter({"backups": 1}))
            paths = []
        self.tell(copies=[str(path) for path in paths])

    def check(self) -> None:
        """Search everything once more. Raises PurgeError when a text is left."""
        hits, remains = _apart(columns.held(self.needles))
        in_files = files.scrub(self.needles, write=False)
        self.tell(kept=remains)
        leftovers = [*hits, *in_files.counts, *(f"{name} ({why})" for name, why in in_files.left.items())]
        if leftovers:
            named = ", ".join(leftovers[:NAMED])
            raise PurgeError(
                "left", f"Texts are left, or were written again: {named}.", "Go on: memory purge --resume."
            )

    def emptied(self) -> None:
        """Forget the texts, also those of plans that nobody confirmed yet."""
        planned = Purge.objects.filter(state=PurgeState.PLANNED).exclude(work={})
        Purge.objects.filter(pk__in=[purge.pk for purge in planned if self.needles.are_in(purge.work)]).delete()
        self.purge.work = {}
        self.purge.save(update_fields=["work"])

    def free(self) -> None:
        """Bring the indexes in step, and rewrite free pages: no byte of a deleted row is left in SQLite's files."""
        keyword_index.catch_up()
        if self.purge.receipt.get("memories"):
            for path in (files.data_folder() / "vectors").glob("*.bits"):  # made anew from the vectors that are left
                path.unlink(missing_ok=True)
        if problems := remove_leftovers():
            raise PurgeError("in_use", problems[0], "Go on: memory purge --resume.")
