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
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise Refusal("unknown_project", f"There is no project {slug!r}.", "Run: manage.py project list")
    return project


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
        run = maintenance.maintain_due(seconds=None) or maintenance.maintain_now(by=by)
        steps = list(run.steps.order_by("position"))
        lines = [f"{BY_NAME[row.name].label}: {row.counts.get('did', 0):,}" for row in steps if row.name in BY_NAME]
        until = maintenance.undo_until(run)
        lines.append(f"It can be undone until {until:%Y-%m-%d %H:%M} UTC.")
        data = {"run": run.pk} | columns(run, "night", "state")
        data |= {"steps": {row.name: row.counts for row in steps}, "undo_until": until}
        back = {f"manage.py curate maintain --undo {run.pk}": "take back what it changed"}
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
        result = reflect(project)
        if result.outcome in (runs.WAITING, runs.FAILED):
            hint = "Run: manage.py model status"
            raise Refusal("model_unavailable", f"The reflector gave no answer: {result.why}.", hint)
        waits = bool(result.counts.get("made"))
        actions = {"manage.py proposal list": "see the proposals"} if waits else {}
        return Result(result, "\n".join(_reflected(result)), actions)

    @verb
    def triage(self, *, dry_run: bool = arg("say what would be decided; decide and ask nothing")) -> Result:
        """Decide about the proposals that wait, by rules and then by a model."""
        result = triage(dry_run=dry_run, source="command")
        actions = {"manage.py proposal list": "see what waits for you"}
        if result.why:
            actions["manage.py model status"] = "see why the model does not answer"
        return Result(asdict(result) | {"counts": dict(result.counts())}, "\n".join(_decided(result, dry_run)), actions)

    @verb
    def status(self) -> Result:
        """Each stage of the way from observation to MEMORY.md: its last run, what waits and since when, its problem."""
        stages = status.stages()
        cells: Columns = {
            "stage": "name",
            "waiting": lambda one: f"{one.what}: {one.waiting.count:,}" if one.waiting.count else "",
            "since (UTC)": lambda one: exact(one.waiting.since) if one.waiting.since else "",
            "last (UTC)": lambda one: exact(one.last) if one.last else "never",
            "what it did": "did",
            "problem": "problem",
            "next": "next",
        }
        return Result(stages, listing(stages, cells), _next(stages))


def _maintain_dry_run() -> Result:
    steps = maintenance.dry_run()
    lines = []
    for one in steps:
        amount = "unknown before it runs" if one.did is None else f"{one.did:,}"
        lines.append(f"{one.label}: {amount}")
        lines += [f"    memory {pk}: {text[:80]} ({reason})" for pk, text, reason in one.changes[:SHOWN]]
        if len(one.changes) > SHOWN:
            lines.append(f"    and {len(one.changes) - SHOWN:,} more")
    again = {"manage.py curate maintain": "do it"}
    return Result(steps, "\n".join(lines), again)


def _reflected(result: Done) -> list[str]:
    if result.outcome != runs.DONE:
        return [f"Nothing was asked: {result.why}."]
    counts = result.counts
    return [
        f"Reflection {result.number}: {counts['observations']:,} observations became {counts['made']:,} proposals; "
        f"{counts['repeated']:,} repeated earlier ones, {counts['gone']:,} had lost their evidence, "
        f"{counts.get('rejected', 0):,} were rejected because their evidence does not carry them.",
        *(f"Not read: {what}." for what in result.unread),
    ]


def _decided(result: Triaged, dry_run: bool) -> list[str]:
    if not result.said and not result.expired:
        lines = ["Nothing was decided." if result.why or not dry_run else "Nothing waits for rules or the model."]
    else:
        rows = [(a.proposal, a.tier.label, a.verdict, a.rule, a.reason[:LONGEST_SHOWN]) for a in result.said]
        lines = [table(["proposal", "tier", "verdict", "rule", "reason"], rows)] if rows else []
    if result.expired:
        lines.append(f"{result.expired:,} expired.")
    if result.calls:
        lines.append(f"{result.calls:,} calls of the model, {result.unread:,} proposals without a usable answer.")
    if result.why:
        until = f" Asking again is of no use before {exact(result.until)}." if result.until else ""
        lines.append(f"The model decides nothing: {result.why}.{until}")
    return lines


def _next(stages: list[StageStatus]) -> dict[str, str]:
    """Say what helps where something waits or does not go on."""
    by_name = {stage.name: stage for stage in stages}
    actions = {}
    if any(by_name[name].problem for name in ("reflect", "triage: model")):
        actions["manage.py model status"] = "see why a model does not answer"
    if "are new" in by_name["reflect"].next:
        actions["manage.py curate reflect"] = "reflect now on what is new"
    if by_name["triage: person"].waiting.count:
        actions["manage.py proposal list"] = "see the proposals that wait for you"
    return actions
