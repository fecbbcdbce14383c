"""`manage.py model`: which model each role has, what it has spent, and whether it answers."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, table
from memories.judging import judge_waiting
from memories.judging.batches import LARGEST
from memories.judging.rules import Action
from memories.llm import status
from memories.llm.calls import Unavailable
from memories.llm.roles import ROLES
from memories.models import Disagreement


def _role_argument(parser: ArgumentParser) -> None:
    parser.add_argument("role", metavar="ROLE", help=f"one of {', '.join(ROLES)}")


def _judge_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="count what waits; ask nothing")


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
    noun = "model"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "status": Verb(
                "Which model each role has, what it has spent today (UTC), and what waits for it.", self.status
            ),
            "test": Verb(
                "Ask the model of a role for a short answer, which counts as a call.", self.test, _role_argument
            ),
            "judge": Verb(
                "Ask the judge about the pairs of memories that matching left unsure, all that wait.",
                self.judge,
                _judge_arguments,
            ),
        }

    def status(self) -> Result:
        found = status.states()
        rows = [
            (
                state.chosen.role.name,
                f"{state.chosen.backend_name}:{state.chosen.model}" if state.chosen.model else "",
                state.word,
                str(state.spent.calls),
                str(state.spent.failures),
                f"${state.spent.usd:.2f}" + (f" of ${state.spent.budget:.2f}" if state.spent.budget else ""),
                f"{state.waiting.text} since {state.waiting.since:%Y-%m-%d %H:%M}" if state.waiting else "",
                state.trouble,
            )
            for state in found
        ]
        text = table(
            ["role", "model", "state", "calls today", "without answer", "spent today", "waiting (UTC)", "why"], rows
        )
        return Result(
            [_data(state) for state in found],
            text,
            [NextAction("manage.py model test observer", "ask the model of a role")],
        )

    def test(self, role: str) -> Result:
        if role not in ROLES:
            raise Refusal("unknown_role", f"There is no role {role!r}.", f"Roles: {', '.join(ROLES)}")
        answer = status.test(role)
        if isinstance(answer, Unavailable):
            why = f"The model of the {role} gives no answer ({answer.reason}): {answer.why}."
            raise Refusal("model_unavailable", why, "Run: manage.py model status")
        cost = "cost not stated" if answer.cost_usd is None else f"${answer.cost_usd:.6f}"
        text = f"{answer.model} answered in {answer.duration_ms / 1000:.1f} s ({answer.backend}, {cost})."
        data = {
            "role": role,
            "backend": answer.backend,
            "model": answer.model,
            "answer": answer.value.model_dump(),
            "tokens_in": answer.tokens_in,
            "tokens_out": answer.tokens_out,
            "cost_usd": answer.cost_usd,
            "duration_ms": answer.duration_ms,
        }
        return Result(data, text)

    def judge(self, dry_run: bool) -> Result:
        waits = Disagreement.objects.unjudged().count()
        if dry_run:
            calls = -(-waits // LARGEST)
            text = f"{_number(waits, 'pair')} to judge, in about {_number(calls, 'call')}."
            return Result({"waiting": waits, "calls": calls}, text)
        done = judge_waiting()
        left = Disagreement.objects.unjudged().count()
        if done.why and not done.calls and left:
            hint = "Run: manage.py model status"
            raise Refusal(
                "model_unavailable", f"The judge was not asked; {_number(left, 'pair')} left: {done.why}.", hint
            )
        rows = [(ACTIONS[action], str(done.actions[action])) for action in Action if done.actions[action]]
        data = {
            "actions": {str(action): done.actions[action] for action in Action},
            "without_verdict": done.unread,
            "calls": done.calls,
            "tokens_in": done.tokens_in,
            "tokens_out": done.tokens_out,
            "cost_usd": round(done.cost_usd, 6),
            "waiting": left,
            "why": done.why,
        }
        ended = f"{_number(done.calls, 'call')}, ${done.cost_usd:.4f}; {_number(left, 'pair')} left"
        text = "\n".join([*([table(["pairs", "number"], rows)] if rows else []), f"{ended}{_because(done.why)}."])
        return Result(data, text)


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _because(why: str) -> str:
    return f": {why}" if why else ""


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
