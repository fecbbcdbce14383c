"""The verb `curate triage`."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict

from claudeops.lib.cli import NextAction, Result, Verb, table
from claudeops.lib.humanize import exact
from memories.curate.triage import Triaged, triage

LONGEST_SHOWN = 100


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be decided; decide and ask nothing")


def run(dry_run: bool) -> Result:
    done = triage(dry_run=dry_run, source="command")
    data = asdict(done) | {"counts": dict(done.counts())}
    actions = [NextAction("manage.py proposal list", "see what waits for you")]
    if done.why:
        actions.append(NextAction("manage.py model status", "see why the model does not answer"))
    return Result(data, "\n".join(_said(done, dry_run)), actions)


def _said(done: Triaged, dry_run: bool) -> list[str]:
    if not done.said and not done.expired:
        lines = ["Nothing was decided." if done.why or not dry_run else "Nothing waits for rules or the model."]
    else:
        rows = [
            (str(one.proposal), one.tier.label, one.verdict, one.rule, one.reason[:LONGEST_SHOWN]) for one in done.said
        ]
        lines = [table(["proposal", "tier", "verdict", "rule", "reason"], rows)] if rows else []
    if done.expired:
        lines.append(f"{done.expired:,} expired.")
    if done.calls:
        lines.append(f"{done.calls:,} calls of the model, {done.unread:,} proposals without a usable answer.")
    if done.why:
        until = f" Asking again is of no use before {exact(done.until)}." if done.until else ""
        lines.append(f"The model decides nothing: {done.why}.{until}")
    return lines


VERB = Verb("Decide about the proposals that wait, by rules and then by a model.", run, _arguments)
