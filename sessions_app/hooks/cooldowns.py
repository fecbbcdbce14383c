"""Refuse a shell command that restarts or redeploys a service more often than its cooldown allows."""

from __future__ import annotations

from memories.capture.text import normalise_service
from sessions_app.cooldowns.limits import Decision, decisions_for
from sessions_app.hooks.events import HANDLERS, HookAnswer, HookCall
from sessions_app.runner.shell import remediations_in

LONGEST = 131_072
"""Characters of a command that are looked at; Linux starts no shell with a longer one."""


def decisions_on(command: str) -> list[Decision]:
    """Decide on each restart and redeployment that a shell command would do, in three queries; none for most."""
    wanted = [(action, normalise_service(service)) for action, service in remediations_in(command[:LONGEST])]
    services = {service for _action, service in wanted if service}
    decisions = {(one.action, one.service): one for one in decisions_for(services)} if services else {}
    return [decisions[one] for one in wanted if one in decisions]


def refuse(call: HookCall) -> HookAnswer | None:
    """Deny the tool call with the reasons of every decision that refuses."""
    command = call.payload.tool_input.get("command")
    decisions = decisions_on(command) if isinstance(command, str) else []
    refused = [one.reason for one in decisions if not one.allowed]
    return HookAnswer(deny="\n".join(refused)) if refused else None


HANDLERS["PreToolUse"].append(refuse)
