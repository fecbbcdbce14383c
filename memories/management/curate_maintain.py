"""The verb `curate maintain`: the nightly maintenance by hand, what it would do, and its undo."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, current_user
from memories.curate import maintenance
from memories.curate.maintenance.steps import BY_NAME
from memories.models import MaintenanceRun

SHOWN = 10
"""Memories of a step that a dry run prints; `--json` has all of them."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what a run would do; writes nothing")
    parser.add_argument("--undo", type=int, metavar="RUN", help="take back what a run changed")
    parser.add_argument("--step", default="", help="with --undo: this step alone")
    parser.add_argument("--by", default="", help="who does it (default: your account)")


def run(*, dry_run: bool, undo: int | None, step: str, by: str, **_: Any) -> Result:
    by = by or current_user()
    if undo is not None:
        return _undo(undo, step, by)
    return _dry_run() if dry_run else _run(by)


def _run(by: str) -> Result:
    done = maintenance.maintain_due(seconds=None) or maintenance.maintain_now(by=by)
    steps = list(done.steps.order_by("position"))
    lines = [f"{BY_NAME[row.name].label}: {row.counts.get('did', 0):,}" for row in steps if row.name in BY_NAME]
    data = {"run": done.pk, "night": done.night, "state": done.state, "steps": {row.name: row.counts for row in steps}}
    until = maintenance.undo_until(done)
    lines.append(f"It can be undone until {until:%Y-%m-%d %H:%M} UTC.")
    back = NextAction(f"manage.py curate maintain --undo {done.pk}", "take back what it changed")
    return Result(data | {"undo_until": until}, "\n".join(lines), [back])


def _dry_run() -> Result:
    found = maintenance.dry_run()
    lines = []
    for one in found:
        said = "unknown before it runs" if one.did is None else f"{one.did:,}"
        lines.append(f"{one.label}: {said}")
        lines += [f"    memory {pk}: {text[:80]} ({reason})" for pk, text, reason in one.changes[:SHOWN]]
        if len(one.changes) > SHOWN:
            lines.append(f"    and {len(one.changes) - SHOWN:,} more")
    again = NextAction("manage.py curate maintain", "do it")
    return Result([asdict(one) for one in found], "\n".join(lines), [again])


def _undo(pk: int, step: str, by: str) -> Result:
    row = MaintenanceRun.objects.filter(pk=pk).first()
    if row is None:
        raise Refusal("not_found", f"There is no maintenance run {pk}.", "Runs are listed at /maintenance.")
    done = maintenance.undo(row, step, by=by)
    return Result(asdict(done), done.message)


VERB = Verb("Do the nightly maintenance now; --dry-run says what it would do, --undo takes a run back.", run, arguments)
