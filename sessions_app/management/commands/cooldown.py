"""`manage.py cooldown`: check, list and clear the limits on restarts and redeployments.

`check` exits with 0 (allowed) or 1 (refused). With `--hook` it is a PreToolUse hook: it reads the command from the JSON
on stdin, and refuses with exit code 2 and the reason on stderr.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from claudeops.lib import sqlite_damage
from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user, table
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
        help="answer as a PreToolUse hook: refuse with exit code 2 and the reason on stderr; without action and "
        "service, check the Bash command in the hook's JSON on stdin",
    )


def _clear_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("service", help="the service, like jellyfin")
    parser.add_argument("action", nargs="?", help=" or ".join(Remediation.values) + " (default: both)")
    parser.add_argument("--reason", required=True, help="why the action is allowed again")
    parser.add_argument("--by", default="", help="who decided it (default: the current user)")


class Command(VerbCommand):
    help = "Cooldowns: limits on restarts and redeployments of a service."
    noun = "cooldown"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "check": Verb(
                "Check whether an action is allowed now: exit code 0 (yes) or 1 (no), with the reason.",
                self.decide,
                _check_arguments,
            ),
            "list": Verb("List the services whose limits are in use.", self.in_force),
            "clear": Verb(
                "Clear a cooldown: earlier restarts or redeployments of the service no longer count.",
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
                "Example: manage.py cooldown check restart jellyfin",
            )
        decision = limits.check(action, service)
        return Result(
            asdict(decision),
            decision.reason,
            [NextAction("manage.py cooldown list", "list the limits in use")],
            exit_code=0 if decision.allowed else 1,
        )

    def hook(self, action: str | None, service: str | None) -> Result:
        try:
            wanted = [(action, service)] if action and service else _from_hook()
            decisions = [limits.check(*one) for one in wanted]
        except Exception as error:
            # Any exit code but 2 would let the tool run. A damaged database may raise anything.
            ours = isinstance(error, (Refusal, SessionsError))
            why = str(error) if ours else sqlite_damage.behind(error) or str(error)
            self.stderr.write(f"The cooldown could not be checked, so the command is refused: {why}")
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
            else "No limit is in use."
        )
        return Result([asdict(decision) for decision in decisions], text)

    def clear(self, service: str, action: str | None, reason: str, by: str) -> Result:
        row = limits.clear(service, action, by=by or current_user(), reason=reason)
        now = [one for one in limits.decisions_for([row.service]) if row.action in ("", one.action)]
        data = {
            "service": row.service,
            "action": row.action or None,
            "cleared_at": row.cleared_at,
            "by": row.by,
            "reason": row.reason,
            "now": [asdict(one) for one in now],
        }
        text = "\n".join(["Cleared.", *(one.reason for one in now)])
        return Result(data, text, [NextAction("manage.py cooldown list", "list the limits in use")])


def _until(decision: limits.Decision) -> str:
    return f"{decision.until:%Y-%m-%d %H:%M} UTC" if decision.until else ""


def _from_hook() -> list[tuple[str, str]]:
    try:
        event = json.load(sys.stdin)
    except ValueError as error:
        raise Refusal(
            "hook_input", f"stdin is not the JSON of a hook: {error}.", "Call this from a PreToolUse hook."
        ) from error
    tool_input = event.get("tool_input") if isinstance(event, dict) else None
    command = tool_input.get("command") if isinstance(tool_input, dict) else None
    return remediations_in(command) if isinstance(command, str) else []
