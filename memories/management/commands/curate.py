"""`manage.py curate`: the stages of the curated memory, by hand."""

from __future__ import annotations

from dataclasses import asdict

from claudeops.lib.cli import Columns, Refusal, Result, VerbCommand, arg, by, columns, listing, table, verb
from claudeops.lib.humanize import exact
from memories.curate import maintenance, status
from memories.curate.maintenance.steps import BY_NAME
from memories.curate.reflection import Done, reflect, runs
from memories.curate.status import StageStatus
from memories.curate.triage import Triaged, triage
from memories.models import MaintenanceRun, Project

SHOWN = 10
"""Memories of a step that a dry run prints; `--json` has all of them."""
LONGEST_SHOWN = 100


def _project(slug: str) -> Project:
    found = Project.objects.filter(slug=slug).first()
    if found is None:
        raise Refusal("unknown_project", f"There is no project {slug!r}.", "Run: manage.py project list")
    return found


class Command(VerbCommand):
    help = "The way from observations to MEMORY.md: what runs by schedule, by hand."

    @verb
    def maintain(
        self,
        *,
        dry_run: bool = arg("say what a run would do; writes nothing"),
        undo: int | None = arg("take back what a run changed", metavar="RUN"),
        step: str = arg("with --undo: this step alone", default=""),
        by: str = by("who does it (default: your account)"),
    ) -> Result:
        """Do the nightly maintenance now; --dry-run says what it would do, --undo takes a run back."""
        if undo is not None:
            row = MaintenanceRun.objects.filter(pk=undo).first()
            if row is None:
                raise Refusal("not_found", f"There is no maintenance run {undo}.", "Runs are listed at /maintenance.")
            taken_back = maintenance.undo(row, step, by=by)
            return Result(taken_back, taken_back.message)
        if dry_run:
            return _maintain_dry_run()
        done = maintenance.maintain_due(seconds=None) or maintenance.maintain_now(by=by)
        steps = list(done.steps.order_by("position"))
        lines = [f"{BY_NAME[row.name].label}: {row.counts.get('did', 0):,}" for row in steps if row.name in BY_NAME]
        until = maintenance.undo_until(done)
        lines.append(f"It can be undone until {until:%Y-%m-%d %H:%M} UTC.")
        data = {"run": done.pk} | columns(done, "night", "state")
        data |= {"steps": {row.name: row.counts for row in steps}, "undo_until": until}
        back = {f"manage.py curate maintain --undo {done.pk}": "take back what it changed"}
        return Result(data, "\n".join(lines), back)

    @verb
    def reflect(
        self,
        *,
        project: Project | None = arg(
            "the file of this project (default: the global one)", metavar="SLUG", read=_project
        ),
        dry_run: bool = arg("say what would be asked; ask nothing"),
    ) -> Result:
        """Ask the reflector about what is new since the last time, and store what it proposes."""
        if dry_run:
            choice, row = runs.preview(project)
            count, tokens = len(choice.memories), len(row["text"]) // 4
            text = f"{count:,} observations that no reflection has shown, up to {exact(choice.until)}, "
            text += f"about {tokens:,} tokens." + (" More wait for the next one." if choice.more else "")
            data = {"observations": row["observations"]} | columns(choice, "until", "more")
            data |= {"tokens": tokens, "target_tokens": row["target_tokens"]}
            return Result(data, text if count else "Nothing is new; nothing would be asked.")
        done = reflect(project)
        if done.outcome in (runs.WAITING, runs.FAILED):
            hint = "Run: manage.py model status"
            raise Refusal("model_unavailable", f"The reflector gave no answer: {done.why}.", hint)
        waits = bool(done.counts.get("made"))
        actions = {"manage.py proposal list": "see the proposals"} if waits else {}
        return Result(done, "\n".join(_reflected(done)), actions)

    @verb
    def triage(self, *, dry_run: bool = arg("say what would be decided; decide and ask nothing")) -> Result:
        """Decide about the proposals that wait, by rules and then by a model."""
        done = triage(dry_run=dry_run, source="command")
        actions = {"manage.py proposal list": "see what waits for you"}
        if done.why:
            actions["manage.py model status"] = "see why the model does not answer"
        return Result(asdict(done) | {"counts": dict(done.counts())}, "\n".join(_decided(done, dry_run)), actions)

    @verb
    def status(self) -> Result:
        """Each stage of the way from observation to MEMORY.md: its last run, what waits and since when, its problem."""
        found = status.stages()
        cells: Columns = {
            "stage": "name",
            "waiting": lambda one: f"{one.what}: {one.waiting.count:,}" if one.waiting.count else "",
            "since (UTC)": lambda one: exact(one.waiting.since) if one.waiting.since else "",
            "last (UTC)": lambda one: exact(one.last) if one.last else "never",
            "what it did": "did",
            "problem": "problem",
            "next": "next",
        }
        return Result(found, listing(found, cells), _next(found))


def _maintain_dry_run() -> Result:
    found = maintenance.dry_run()
    lines = []
    for one in found:
        said = "unknown before it runs" if one.did is None else f"{one.did:,}"
        lines.append(f"{one.label}: {said}")
        lines += [f"    memory {pk}: {text[:80]} ({reason})" for pk, text, reason in one.changes[:SHOWN]]
        if len(one.changes) > SHOWN:
            lines.append(f"    and {len(one.changes) - SHOWN:,} more")
    again = {"manage.py curate maintain": "do it"}
    return Result(found, "\n".join(lines), again)


def _reflected(done: Done) -> list[str]:
    if done.outcome != runs.DONE:
        return [f"Nothing was asked: {done.why}."]
    counts = done.counts
    return [
        f"Reflection {done.number}: {counts['observations']:,} observations became {counts['made']:,} proposals; "
        f"{counts['repeated']:,} repeated earlier ones, {counts['gone']:,} had lost their evidence, "
        f"{counts.get('rejected', 0):,} were rejected because their evidence does not carry them.",
        *(f"Not read: {what}." for what in done.unread),
    ]


def _decided(done: Triaged, dry_run: bool) -> list[str]:
    if not done.said and not done.expired:
        lines = ["Nothing was decided." if done.why or not dry_run else "Nothing waits for rules or the model."]
    else:
        rows = [(a.proposal, a.tier.label, a.verdict, a.rule, a.reason[:LONGEST_SHOWN]) for a in done.said]
        lines = [table(["proposal", "tier", "verdict", "rule", "reason"], rows)] if rows else []
    if done.expired:
        lines.append(f"{done.expired:,} expired.")
    if done.calls:
        lines.append(f"{done.calls:,} calls of the model, {done.unread:,} proposals without a usable answer.")
    if done.why:
        until = f" Asking again is of no use before {exact(done.until)}." if done.until else ""
        lines.append(f"The model decides nothing: {done.why}.{until}")
    return lines


def _next(found: list[StageStatus]) -> dict[str, str]:
    """Say what helps where something waits or does not go on."""
    by_name = {stage.name: stage for stage in found}
    said = {}
    if any(by_name[name].problem for name in ("reflect", "triage: model")):
        said["manage.py model status"] = "see why a model does not answer"
    if "are new" in by_name["reflect"].next:
        said["manage.py curate reflect"] = "reflect now on what is new"
    if by_name["triage: person"].waiting.count:
        said["manage.py proposal list"] = "see the proposals that wait for you"
    return said
