"""`manage.py gate`: how often people disagree with the gate, and its thresholds."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user, table
from claudeops.lib.humanize import exact
from memories.capture.reasons import in_words
from memories.lifecycle import gate_decisions
from memories.queries import gate_report
from memories.queries.gate_report import Row

MOST_DAYS = 3650


def _of_report(parser: ArgumentParser) -> None:
    parser.add_argument("--days", type=int, default=gate_report.DAYS, help=f"how far back (default {gate_report.DAYS})")


def _of_apply(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=" or ".join(gate_decisions.THRESHOLD_NAMES))
    parser.add_argument("value", metavar="VALUE", type=float, help="a confidence from 0 to 1")
    parser.add_argument("--reason", required=True, help="why, for the history")
    parser.add_argument("--by", default="", help="who sets it (default: your account)")


class Command(VerbCommand):
    help = "The gate before the memories: how often people disagree with it, and its thresholds."
    noun = "gate"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "report": Verb(
                "For each rule and model, how often people disagreed; proposed thresholds.", self.report, _of_report
            ),
            "apply": Verb("Set a threshold from now on.", self.apply, _of_apply),
            "history": Verb("Every change of a threshold, the latest first.", self.history),
        }

    def report(self, days: int) -> Result:
        if not 1 <= days <= MOST_DAYS:
            raise Refusal("usage", f"--days is {days}; allowed is 1 to {MOST_DAYS}.")
        made = gate_report.report(timezone.now(), days)
        lines = [f"{made.decisions:,} decisions in {days} days, {made.labelled:,} of them labelled by people."]
        if made.rules:
            headers = ["rule", "verdict", "decisions", "labelled", "people disagreed", "meaning"]
            lines += ["", table(headers, [(*_cells(row), in_words([row.name])) for row in made.rules])]
        if made.models:
            headers = ["model", "said", "decisions", "labelled", "people disagreed"]
            lines += ["", table(headers, [_cells(row) for row in made.models])]
        proposals = [
            (one.name, f"{one.now:g}", "-" if one.value is None else f"{one.value:g}", one.why)
            for one in made.proposals
        ]
        lines += ["", table(["threshold", "now", "proposed", "why"], proposals)]
        actions = [
            NextAction(f'manage.py gate apply {one.name} {one.value:g} --reason "{one.why}"', "set what is proposed")
            for one in made.proposals
            if one.value is not None and one.value != one.now
        ]
        data = {
            "since": made.since,
            "decisions": made.decisions,
            "labelled": made.labelled,
            "rules": [_data(row) for row in made.rules],
            "models": [_data(row) for row in made.models],
            "thresholds": [asdict(one) for one in made.proposals],
        }
        lines += ["", *(action.command for action in actions)] if actions else []
        return Result(data, "\n".join(lines), actions)

    def apply(self, name: str, value: float, reason: str, by: str) -> Result:
        row = gate_decisions.set_threshold(name, value, by=by or current_user(), reason=reason)
        now = asdict(gate_decisions.current_thresholds())
        if row is None:
            return Result({"changed": False, "thresholds": now}, f"{name} is {value:g} already.")
        text = f"{name} is {row.value:g} from now on; it was {row.before:g}."
        return Result(
            {"changed": True, "thresholds": now}, text, [NextAction("manage.py gate history", "see all changes")]
        )

    def history(self) -> Result:
        rows = list(gate_decisions.threshold_history())
        now = ", ".join(f"{name} {value:g}" for name, value in asdict(gate_decisions.current_thresholds()).items())
        text = f"In force: {now}."
        if rows:
            cells = [(exact(row.at), row.name, f"{row.before:g} → {row.value:g}", row.by, row.reason) for row in rows]
            text += "\n" + table(["at", "threshold", "value", "by", "reason"], cells)
        data = [
            {
                "at": row.at,
                "name": row.name,
                "before": row.before,
                "value": row.value,
                "by": row.by,
                "reason": row.reason,
            }
            for row in rows
        ]
        return Result({"thresholds": asdict(gate_decisions.current_thresholds()), "history": data}, text)


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    return row.name, row.verdict, f"{row.decisions:,}", f"{row.labelled:,}", _share(row)


def _share(row: Row) -> str:
    """Say the share of disagreement and its range of chance: "3 of 8, 38 % (14 to 69 %)"."""
    if row.range is None:
        return "no label yet"
    low, high = row.range
    return f"{row.disagreed:,} of {row.labelled:,}, {row.disagreed / row.labelled:.0%} ({low:.0%} to {high:.0%})"


def _data(row: Row) -> dict[str, Any]:
    return asdict(row) | {"range": row.range}
