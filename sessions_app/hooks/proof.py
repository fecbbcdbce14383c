"""Prove what a person typed into a session of a developer's CLI: the receipt of its prompt, which precedes every tool.

The prompt itself goes nowhere: its hash is kept. A receipt stops a transcript that somebody made up. It does not stop
an agent that runs as the same user and hides on purpose (docs/security.md).
"""

from __future__ import annotations

from functools import partial

from sessions_app.hooks.events import HANDLERS, HookAnswer, HookCall
from sessions_app.models import PromptReceipt
from sessions_app.runner.turns import prompt_hash

START, PROMPT = "SessionStart", "UserPromptSubmit"


def prove(call: HookCall) -> HookAnswer | None:
    """Keep the receipt of a prompt, or of the start of a session; of one of ours the own log is the proof."""
    return None if call.session else HookAnswer(keep=partial(_keep, call))


def _keep(call: HookCall) -> None:
    receipt = PromptReceipt(
        cli_session_id=call.payload.cli_session_id,
        prompt=prompt_hash(call.payload.prompt) if call.event == PROMPT else "",
        transcript_path=call.payload.transcript_path[:500],
        by_agent=call.payload.by_agent,
        at=call.at,
    )
    PromptReceipt.objects.bulk_create([receipt], ignore_conflicts=True)


HANDLERS[START].append(prove)
HANDLERS[PROMPT].append(prove)
