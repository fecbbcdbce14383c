"""`manage.py slog`: the journal of what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import Columns, Refusal, Result, VerbCommand, arg, by, listing, verb
from claudeops.lib.humanize import exact
from memories.library import journal
from memories.library import vocabulary as words
from memories.models import JournalEntry
from memories.queries.journal import JournalFilterSet

MOST = 1_000
COLUMNS: Columns = {
    "id": lambda one: one.uid[:8],
    "at (UTC)": lambda one: exact(one.at),
    "action": "action",
    "tool": "tool",
    "by": lambda one: one.agent or one.by,
    "detail": lambda one: one.detail if len(one.detail) <= 100 else f"{one.detail[:99]}…",
}
LIMIT = arg(f"entries, at most {MOST} (default 20)", default=20, within=(1, MOST))


@dataclass(frozen=True)
class Filters:
    action: str = arg("only this verb", default="")
    tool: str = arg("only this noun", default="")
    project: str = arg("only this project's, by its slug", default="")
    agent: str = arg("only this agent's, by its slug", default="")
    session: str = arg("only this session's, by its number", default="")
    during: str = arg("a period, as 24h, 7d, or two times with .. between", default="")

    def rows(self, text: Sequence[str] = ()) -> Any:
        given = {name: value for name, value in vars(self).items() if value} | {"text": " ".join(text)}
        filters = JournalFilterSet(given, queryset=JournalEntry.objects.all())
        if not filters.is_valid():
            name, errors = next(iter(filters.errors.items()))
            raise Refusal("usage", f"--{name} is {given.get(name)!r}: {errors[0]}")
        journal.catch_up()
        return filters.qs.order_by("-at", "-pk")


class Command(VerbCommand):
    help = "The journal: what was done, by whom, with what, and why."

    @verb
    def write(
        self,
        action: str = arg("a verb: deploy, restart, change, …"),
        tool: str = arg("a noun: what it was done with or to, such as jellyfin"),
        detail: Sequence[str] = arg("what was done, in a sentence"),
        *,
        reason: str = arg("why", default=""),
        project: str = arg("the slug of the project that it was about", default=""),
        agent: str = arg("the slug of the agent that did it", default=""),
        session: int | None = arg("the number of the session in which it was done", within=(1, 2**63 - 1)),
        by: str = by("who did it (default: your account)"),
    ) -> Result:
        """Write an entry. It is on the disk when the command ends, and is never edited."""
        written = journal.write(
            action, tool, " ".join(detail), reason=reason, session=session, agent=agent, project=project, by=by
        )
        entry = written.entry
        actions = {
            f"manage.py slog vocabulary {kind} {getattr(entry, kind)} {known}": f"if it is {known}"
            for kind, known in written.suggestions.items()
        }
        near = "".join(
            f"\n{getattr(entry, kind)} is new; did you mean {known}? "
            f"manage.py slog vocabulary {kind} {getattr(entry, kind)} {known}"
            for kind, known in written.suggestions.items()
        )
        actions["manage.py slog tail"] = "see the latest entries"
        return Result(journal.as_data(entry), f"Written: {entry.uid[:8]} {entry}.{near}", actions)

    @verb
    def query(
        self,
        text: Sequence[str] = arg("words that all stand in it", default=[]),
        *,
        filters: Filters,
        limit: int = LIMIT,
    ) -> Result:
        """Entries that the filters find, the latest first."""
        return _listed(list(filters.rows(text)[:limit]), "No entry is like that.")

    @verb
    def tail(self, *, filters: Filters, limit: int = LIMIT) -> Result:
        """The latest entries, the last one at the end."""
        return _listed(list(filters.rows()[:limit])[::-1], "The journal has no entry yet.")

    @verb
    def stats(self, *, filters: Filters) -> Result:
        """How many entries there are, by action, tool and who wrote them."""
        found = journal.stats(filters.rows())
        period = f", {exact(found.first)} to {exact(found.last)}" if found.first and found.last else ""
        lines = [f"{found.entries:,} entries{period}"]
        for title, counts in (("Actions", found.actions), ("Tools", found.tools), ("By", found.by)):
            if counts:
                lines.append(f"{title}: {', '.join(f'{name} {count:,}' for name, count in counts.items())}")
        return Result(found, "\n".join(lines))

    @verb
    def verify(self) -> Result:
        """Read each line of the files on this host; exit code 1 where one is no entry, or the index lacks one."""
        found = journal.verify()
        lines = [f"{found.lines:,} lines, {found.entries:,} entries, {found.missing:,} missing in the index."]
        lines += [f"{one.file}:{one.line}: {one.why}" for one in (*found.broken, *found.notes)]
        actions = {"manage.py slog reindex": "make the index again"} if found.missing else {}
        return Result(found, "\n".join(lines), actions, exit_code=int(bool(found.broken or found.missing)))

    @verb
    def reindex(self) -> Result:
        """Make the index again from the files on this host."""
        count = journal.reindex()
        return Result({"entries": count}, f"{count:,} entries are indexed.", {"manage.py slog verify": "compare both"})

    @verb
    def vocabulary(
        self,
        kind: str = arg("only these words", choices=["action", "tool"], default=""),
        old: str = arg("a word to merge into another", default=""),
        new: str = arg("the word that stays", default=""),
        *,
        by: str = by("who merges them (default: your account)"),
    ) -> Result:
        """The words and how often each was written; with OLD and NEW, read OLD as NEW from now on."""
        if old:
            if not new:
                raise Refusal("usage", "NEW is missing.", f"manage.py slog vocabulary {kind} {old} NEW")
            count = words.merge(kind, old, new, by=by, at=timezone.now())
            return Result(
                {"entries": count}, f"{count:,} entries have the {kind} {new} now; the files stay as they are."
            )
        found = words.vocabulary(kind)
        cells: Columns = {
            "kind": "kind",
            "word": "word",
            "entries": "count",
            "merged": lambda one: ", ".join(one.merged),
        }
        actions = {"manage.py slog vocabulary action OLD NEW": "read OLD as NEW"}
        return Result(found, listing(found, cells), actions)


def _listed(rows: list[JournalEntry], empty: str) -> Result:
    actions = {f"manage.py slog query --tool {rows[0].tool}": f"what was done with {rows[0].tool}"} if rows else {}
    return Result([journal.as_data(one) for one in rows], listing(rows, COLUMNS, empty), actions)
