"""`manage.py model`: which model each role has, what it has spent, and whether it answers."""

from __future__ import annotations

from typing import Any

from claudeops.lib.cli import Columns, Refusal, Result, VerbCommand, arg, columns, listing, table, verb
from claudeops.lib.humanize import quantity
from memories.judging import judge_waiting
from memories.judging.rules import Action
from memories.llm import status
from memories.llm.batch import SIZES
from memories.llm.calls import Unavailable
from memories.llm.roles import ROLES
from memories.models import Disagreement

ACTIONS = {
    Action.MERGED: "merged",
    Action.KEPT: "kept, because they are two facts",
    Action.BOTH: "no contradiction: both hold",
    Action.SUPERSEDES: "superseded by the newer memory",
    Action.CONTRADICTION: "now a contradiction",
    Action.PERSON: "left to a person",
}


class Command(VerbCommand):
    help = "Models that claudeops itself asks, by role."

    @verb
    def status(self) -> Result:
        """Which model each role has, what it has spent today (UTC), and what waits for it."""
        states = status.states()
        cells: Columns = {
            "role": "chosen.role.name",
            "model": lambda one: f"{one.chosen.backend_name}:{one.chosen.model}" if one.chosen.model else "",
            "state": "word",
            "calls today": "spent.calls",
            "without answer": "spent.failures",
            "spent today": lambda one: (
                f"${one.spent.usd:.2f}" + (f" of ${one.spent.budget:.2f}" if one.spent.budget else "")
            ),
            "waiting (UTC)": lambda one: (
                f"{one.waiting.text} since {one.waiting.since:%Y-%m-%d %H:%M}" if one.waiting else ""
            ),
            "why": "trouble",
        }
        see = {"manage.py model test observer": "ask the model of a role"}
        return Result([_data(state) for state in states], listing(states, cells), see)

    @verb
    def test(self, role: str = arg(f"one of {', '.join(ROLES)}")) -> Result:
        """Ask the model of a role for a short answer, which counts as a call."""
        if role not in ROLES:
            raise Refusal("unknown_role", f"There is no role {role!r}.", f"Roles: {', '.join(ROLES)}")
        answer = status.test(role)
        if isinstance(answer, Unavailable):
            why = f"The model of the {role} gives no answer ({answer.reason}): {answer.why}."
            raise Refusal("model_unavailable", why, "Run: manage.py model status")
        cost = "cost not stated" if answer.cost_usd is None else f"${answer.cost_usd:.6f}"
        text = f"{answer.model} answered in {answer.duration_ms / 1000:.1f} s ({answer.backend}, {cost})."
        data = {"role": role} | columns(answer, "backend", "model") | {"answer": answer.value.model_dump()}
        return Result(data | columns(answer, "tokens_in", "tokens_out", "cost_usd", "duration_ms"), text)

    @verb
    def judge(self, *, dry_run: bool = arg("count what waits; ask nothing")) -> Result:
        """Ask the judge about the pairs of memories that matching left unsure, all that wait."""
        waits = Disagreement.objects.unjudged().count()
        if dry_run:
            calls = -(-waits // SIZES[0])
            text = f"{quantity(waits, 'pair')} to judge, in about {quantity(calls, 'call')}."
            return Result({"waiting": waits, "calls": calls}, text)
        result = judge_waiting()
        remaining = Disagreement.objects.unjudged().count()
        if result.why and not result.calls and remaining:
            why = f"The judge was not asked; {quantity(remaining, 'pair')} left: {result.why}."
            raise Refusal("model_unavailable", why, "Run: manage.py model status")
        rows = [(ACTIONS[action], str(result.actions[action])) for action in Action if result.actions[action]]
        data = {
            "actions": {str(action): result.actions[action] for action in Action},
            "without_verdict": result.unread,
            **columns(result, "calls", "tokens_in", "tokens_out"),
            "cost_usd": round(result.cost_usd, 6),
            "waiting": remaining,
            "why": result.why,
        }
        ended = f"{quantity(result.calls, 'call')}, ${result.cost_usd:.4f}; {quantity(remaining, 'pair')} left"
        ended += f": {result.why}." if result.why else "."
        return Result(data, "\n".join([table(["pairs", "number"], rows), ended] if rows else [ended]))


def _data(state: status.State) -> dict[str, Any]:
    return {
        "role": state.chosen.role.name,
        "purpose": state.chosen.role.purpose,
        "backend": state.chosen.backend_name,
        "model": state.chosen.model,
        "state": state.word,
        "why": state.trouble,
        "resting_until": state.rest.until if state.rest else None,
        "calls_today": state.spent.calls,
        "without_answer_today": state.spent.failures,
        "spent_today_usd": state.spent.usd,
        "budget_usd": state.spent.budget,
        "left_usd": state.spent.left,
        "most_calls": state.spent.most_calls,
        "waiting": state.waiting.count if state.waiting else 0,
        "waiting_for": state.waiting.what if state.waiting else "",
        "waiting_since": state.waiting.since if state.waiting else None,
    }
