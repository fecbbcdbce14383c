"""`manage.py cooldown`: check, list and clear the limits on restarts and redeployments.

`check` exits with 0 (allowed) or 1 (refused). The PreToolUse hook is no command: `sessions_app.hooks` answers it.
"""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from dataclasses import asdict
from typing import Any

from claudeops.lib.cli import NextAction, Refusal, Result, Verb, VerbCommand, current_user, table
from sessions_app.cooldowns import limits
from sessions_app.models import Remediation

HOOK_REFUSED = 2
MOVED = (
    "The hook `cooldown check --hook` has moved. Install the new one with `manage.py hook install --cooldowns`, and "
    "take this one out of the settings of Claude Code; until then it refuses every command."
)


def _check_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", help=" or ".join(Remediation.values))
    parser.add_argument("service", nargs="?", help="the service, like jellyfin")
    parser.add_argument(
        "--hook",
        action="store_true",
        help=SUPPRESS,  # settings of people still hold it; as an unknown option it would refuse without saying why
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
            self.stderr.write(MOVED)
            return Result({"allowed": False, "error": MOVED}, exit_code=HOOK_REFUSED)
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
