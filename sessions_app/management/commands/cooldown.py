"""`manage.py cooldown`: check, list and clear the limits on restarts and redeployments.

`check` exits with 0 (allowed) or 1 (refused). The PreToolUse hook is no command: `sessions_app.hooks` answers it.
"""

from __future__ import annotations

from argparse import SUPPRESS

from claudeops.lib.cli import Columns, Refusal, Result, VerbCommand, arg, by, columns, listing, verb
from sessions_app.cooldowns import limits
from sessions_app.models import Remediation

HOOK_REFUSED = 2
LOOK = {"manage.py cooldown list": "list the limits in use"}
MOVED = (
    "The hook `cooldown check --hook` has moved. Install the new one with `manage.py hook install --cooldowns`, and "
    "take this one out of the settings of Claude Code; until then it refuses every command."
)


class Command(VerbCommand):
    help = "Cooldowns: limits on restarts and redeployments of a service."

    @verb
    def check_(
        self,
        action: str | None = arg(" or ".join(Remediation.values)),
        service: str | None = arg("the service, like jellyfin"),
        *,
        hook: bool = arg(SUPPRESS),  # settings of people still hold it; as an unknown option it would not say why
    ) -> Result:
        """Check whether an action is allowed now: exit code 0 (yes) or 1 (no), with the reason."""
        if hook:
            self.stderr.write(MOVED)
            return Result({"allowed": False, "error": MOVED}, exit_code=HOOK_REFUSED)
        if not action or not service:
            fix = "Example: manage.py cooldown check restart jellyfin"
            raise Refusal("usage", "An action and a service are needed.", fix)
        decision = limits.check(action, service)
        return Result(decision, decision.reason, LOOK, exit_code=0 if decision.allowed else 1)

    @verb
    def list_(self) -> Result:
        """List the services whose limits are in use."""
        decisions = limits.in_force()
        cells: Columns = {
            "service": "service",
            "action": "action",
            "used": lambda one: f"{one.used} of {one.limit}",
            "within": lambda one: f"{one.window_hours:g} h",
            "allowed": lambda one: "yes" if one.allowed else "no",
            "allowed again": lambda one: f"{one.until:%Y-%m-%d %H:%M} UTC" if one.until else "",
        }
        text = listing(decisions, cells, "No limit is in use.")
        return Result(decisions, text)

    @verb
    def clear(
        self,
        service: str = arg("the service, like jellyfin"),
        action: str | None = arg(f"{' or '.join(Remediation.values)} (default: both)"),
        *,
        reason: str = arg("why the action is allowed again"),
        by: str = by("who decided it (default: the current user)"),
    ) -> Result:
        """Clear a cooldown: earlier restarts or redeployments of the service no longer count."""
        row = limits.clear(service, action, by=by, reason=reason)
        now = [one for one in limits.decisions_for([row.service]) if row.action in ("", one.action)]
        data = {"service": row.service, "action": row.action or None} | columns(row, "cleared_at", "by", "reason")
        data["now"] = now
        text = "\n".join(["Cleared.", *(one.reason for one in now)])
        return Result(data, text, LOOK)
