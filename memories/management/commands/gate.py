"""`manage.py gate`: how often people disagree with the gate, and its thresholds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils import timezone

from claudeops.lib.cli import Columns, Result, VerbCommand, arg, by, columns, listing, table, verb
from claudeops.lib.humanize import exact
from memories.capture.reasons import in_words
from memories.lifecycle import gate_decisions
from memories.queries import gate_report
from memories.queries.gate_report import Row

MOST_DAYS = 3650
DAYS = arg(f"how far back (default {gate_report.DAYS})", default=gate_report.DAYS, within=(1, MOST_DAYS))


class Command(VerbCommand):
    help = "The gate before the memories: how often people disagree with it, and its thresholds."

    @verb
    def report(self, *, days: int = DAYS) -> Result:
        """For each rule and model, how often people disagreed; proposed thresholds."""
        summary = gate_report.report(timezone.now(), days)
        lines = [f"{summary.decisions:,} decisions in {days} days, {summary.labelled:,} of them labelled by people."]
        labels: Columns = {
            "decisions": lambda row: f"{row.decisions:,}",
            "labelled": lambda row: f"{row.labelled:,}",
            "people disagreed": _share,
        }
        meaning = {"meaning": lambda row: in_words([row.name])}
        proposed: Columns = {
            "threshold": "name",
            "now": lambda one: f"{one.now:g}",
            "proposed": lambda one: "-" if one.value is None else f"{one.value:g}",
            "why": "why",
        }
        tables = (
            listing(summary.rules, {"rule": "name", "verdict": "verdict", **labels, **meaning}),
            listing(summary.models, {"model": "name", "said": "verdict", **labels}),
            listing(summary.proposals, proposed),
        )
        lines += [f"\n{text}" for text in tables if text]
        actions = {
            f'manage.py gate apply {one.name} {one.value:g} --reason "{one.why}"': "set what is proposed"
            for one in summary.proposals
            if one.value is not None and one.value != one.now
        }
        data = columns(summary, "since", "decisions", "labelled") | {
            "rules": [_data(row) for row in summary.rules],
            "models": [_data(row) for row in summary.models],
            "thresholds": summary.proposals,
        }
        lines += ["", *actions] if actions else []
        return Result(data, "\n".join(lines), actions)

    @verb
    def apply(
        self,
        name: str = arg(" or ".join(gate_decisions.THRESHOLD_NAMES)),
        value: float = arg("a confidence from 0 to 1"),
        *,
        reason: str = arg("why, for the history"),
        by: str = by("who sets it (default: your account)"),
    ) -> Result:
        """Set a threshold from now on."""
        row = gate_decisions.set_threshold(name, value, by=by, reason=reason)
        now = gate_decisions.current_thresholds()
        if row is None:
            return Result({"changed": False, "thresholds": now}, f"{name} is {value:g} already.")
        text = f"{name} is {row.value:g} from now on; it was {row.before:g}."
        see = {"manage.py gate history": "see all changes"}
        return Result({"changed": True, "thresholds": now}, text, see)

    @verb
    def history(self) -> Result:
        """Every change of a threshold, the latest first."""
        rows = list(gate_decisions.threshold_history())
        now = ", ".join(f"{name} {value:g}" for name, value in asdict(gate_decisions.current_thresholds()).items())
        text = f"In force: {now}."
        if rows:
            cells = [(exact(row.at), row.name, f"{row.before:g} → {row.value:g}", row.by, row.reason) for row in rows]
            text += "\n" + table(["at", "threshold", "value", "by", "reason"], cells)
        data = [columns(row, "at", "name", "before", "value", "by", "reason") for row in rows]
        return Result({"thresholds": gate_decisions.current_thresholds(), "history": data}, text)


def _share(row: Row) -> str:
    """Say the share of disagreement and its range of chance: "3 of 8, 38 % (14 to 69 %)"."""
    if row.range is None:
        return "no label yet"
    low, high = row.range
    return f"{row.disagreed:,} of {row.labelled:,}, {row.disagreed / row.labelled:.0%} ({low:.0%} to {high:.0%})"


def _data(row: Row) -> dict[str, Any]:
    return asdict(row) | {"range": row.range}
