"""`manage.py cooldown`: may a service be restarted or redeployed now, what is in force, and clearing it.

`check` answers with its exit code (0 allowed, 1 refused), so a script or a PreToolUse hook can ask. With
`--hook` it speaks the hook's language: the command is read from the hook's JSON on stdin, a refusal exits
with 2 and its reason on stderr.
"""

from __future__ import annotations

import getpass
import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.db import DatabaseError

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, table
from sessions_app.cooldowns import limits
from sessions_app.errors import SessionsError
from sessions_app.models import Remediation
from sessions_app.runner.remediations import remediations_in

HOOK_REFUSED = 2


def _check_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", help=" or ".join(Remediation.values))
    parser.add_argument("service", nargs="?", help="the service, like jellyfin")
    parser.add_argument(
        "--hook",
        action="store_true",
        help="answer as a PreToolUse hook: a refusal exits with 2 and its reason on stderr; "
        "without action and service, they are read from the Bash command in the hook's JSON on stdin",
    )


def _clear_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("service", help="the service, like jellyfin")
    parser.add_argument("action", nargs="?", help=" or ".join(Remediation.values) + " (both by default)")
    parser.add_argument("--reason", required=True, help="why it may be done again")
    parser.add_argument("--by", default="", help="whose decision it is (yours by default)")


class Command(VerbCommand):
    help = "Cooldowns: how often a service may be restarted or redeployed."
    noun = "cooldown"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "check": Verb(
                "Whether an action is allowed now: exit code 0 or 1, with the reason.", self.decide, _check_arguments
            ),
            "list": Verb("What is used of the limits, by service.", self.in_force),
            "clear": Verb(
                "Lets a service be restarted or redeployed again: what was done before counts no more.",
                self.clear,
                _clear_arguments,
            ),
        }

    def decide(self, action: str | None, service: str | None, hook: bool) -> Result:
        if hook:
            return self.hook(action, service)
        if not action or not service:
            raise Refusal(
                "usage",
                "An action and a service are needed.",
                "Like: manage.py cooldown check restart jellyfin",
            )
        decision = limits.check(action, service)
        return Result(
            asdict(decision),
            decision.reason,
            [NextAction("manage.py cooldown list", "see all limits in use")],
            exit_code=0 if decision.allowed else 1,
        )

    def hook(self, action: str | None, service: str | None) -> Result:
        try:
            wanted = [(action, service)] if action and service else _from_hook()
            decisions = [limits.check(*one) for one in wanted]
        except (Refusal, SessionsError, DatabaseError) as error:
            # Any other exit code than 2 would let the tool run: what cannot be judged is not done.
            self.stderr.write(f"The cooldown could not be checked, so the command is refused: {error}")
            return Result({"allowed": False, "error": str(error)}, exit_code=HOOK_REFUSED)
        refused = [decision for decision in decisions if not decision.allowed]
        for decision in refused:
            self.stderr.write(decision.reason)
        data = {"allowed": not refused, "checked": [asdict(decision) for decision in decisions]}
        return Result(data, exit_code=HOOK_REFUSED if refused else 0)

    def in_force(self) -> Result:
        decisions = limits.in_force()
        rows = [
            [
                d.service,
                d.action,
                f"{d.used} of {d.limit}",
                f"{d.window_hours:g} h",
                "yes" if d.allowed else "no",
                _until(d),
            ]
            for d in decisions
        ]
        text = (
            table(["service", "action", "used", "within", "allowed", "allowed again"], rows)
            if rows
            else "No service has used any of its limits."
        )
        return Result([asdict(decision) for decision in decisions], text)

    def clear(self, service: str, action: str | None, reason: str, by: str) -> Result:
        row = limits.clear(service, action, by=by or _who(), reason=reason)
        now = [one for one in limits.standing([row.service]) if row.action in ("", one.action)]
        data = {
            "service": row.service,
            "action": row.action or None,
            "cleared_at": row.cleared_at,
            "by": row.by,
            "reason": row.reason,
            "now": [asdict(one) for one in now],
        }
        text = "\n".join(["Cleared.", *(one.reason for one in now)])
        return Result(data, text, [NextAction("manage.py cooldown list", "see all limits in use")])


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user of this number
        return "command line"


def _until(decision: limits.Decision) -> str:
    return f"{decision.until:%Y-%m-%d %H:%M} UTC" if decision.until else ""


def _from_hook() -> list[tuple[str, str]]:
    try:
        event = json.load(sys.stdin)
    except ValueError as error:
        raise Refusal(
            "hook_input", f"stdin holds no JSON of a hook: {error}.", "Call it from a PreToolUse hook."
        ) from error
    tool_input = event.get("tool_input") if isinstance(event, dict) else None
    command = tool_input.get("command") if isinstance(tool_input, dict) else None
    return remediations_in(command) if isinstance(command, str) else []
