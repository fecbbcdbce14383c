"""What to do about the way a session ended: a table from its reason to a sentence and steps. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sessions_app.models import Status
from sessions_app.queries.failures import without_escalation


class Kind(StrEnum):
    """A step: a field of the agent's form, handing over to the next tier, a tab of the page, a section of the docs."""

    AGENT = "agent"
    HAND_OVER = "hand_over"
    TAB = "tab"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Step:
    """`target` is the field, the tab or the heading's anchor in docs/operating.md; empty for handing over."""

    kind: Kind
    label: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    sentence: str
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """The advice for reasons that `pattern` finds, case-insensitive."""

    pattern: str
    advice: Advice


def _agent(label: str, field: str) -> Step:
    return Step(Kind.AGENT, label, field)


def _read(heading: str) -> Step:
    return Step(Kind.READ, heading, heading.lower().replace(" ", "-"))


HAND_OVER = Step(Kind.HAND_OVER, "Hand over")
ERROR = Step(Kind.TAB, "Read what it wrote to stderr", "answer")
PROMPT = Step(Kind.TAB, "Read its prompt", "prompt")

TABLE: Sequence[Row] = (
    Row(
        r"^Stopped by .* before it started",
        Advice("It was stopped while it waited; nothing was done. Run it again if it is still wanted."),
    ),
    Row(
        r"^Stopped by ",
        Advice("A person stopped it. What it had reported until then is kept; run it again if it is wanted."),
    ),
    Row(r"^Its user interrupted", Advice("Its user interrupted it in a terminal; the imported log ends there.")),
    Row(
        r"^Ended at its time limit",
        Advice(
            "It needed more time than it has. Raise its time limit, ask for less at once, or hand over.",
            (_agent("Raise its time limit", "timeout_seconds"), HAND_OVER),
        ),
    ),
    Row(
        r"limit of (?:\d+ )?turns",
        Advice(
            "It needed more turns than it has. Raise its limit, ask for less at once, or hand over.",
            (_agent("Raise its limit of turns", "max_turns"), HAND_OVER),
        ),
    ),
    Row(
        r"reached its cost limit",
        Advice(
            "It reached its budget. Raise it, choose a cheaper model, or ask for less at once.",
            (_agent("Raise its budget", "max_budget_usd"), _agent("Choose its model", "model")),
        ),
    ),
    Row(
        r"gave no valid structured answer",
        Advice(
            "Its answer never fitted the schema. Its text was read anyway; the agent can do without the structured "
            "answer.",
            (
                _agent("Switch off the structured response", "structured_response"),
                Step(Kind.TAB, "Read its answer", "answer"),
            ),
        ),
    ),
    Row(
        r"^The session was interrupted", Advice("Something interrupted the CLI during a turn. Run it again.", (ERROR,))
    ),
    Row(
        r"reported an error.*(?:not logged in|/login|invalid (?:x-)?api.key|oauth token|authentication|HTTP 401)",
        Advice(
            "The CLI is not signed in on the worker's host. Sign it in, then run this again.",
            (_read("the CLI is not signed in"),),
        ),
    ),
    Row(
        r"reported an error.*credit balance",
        Advice("The account has no credit left. Add credit to it, then run this again."),
    ),
    Row(
        r"reported an error.*(?:usage limit|hit your .*limit|limit reached|rate.?limit|HTTP 429)",
        Advice(
            "The account's limit is reached. Wait until it resets (the reason says when, if the service told), then "
            "run this again; an agent that runs less often reaches it later.",
            (_agent("Run it less often", "schedule_kind"), _read("the day's budget is reached")),
        ),
    ),
    Row(
        r"reported an error.*(?:prompt is too long|too many tokens|context (?:window|length|limit))",
        Advice(
            "What it read did not fit into the model's context. Ask for less at once, or let it read less.",
            (PROMPT, _agent("Choose its model", "model")),
        ),
    ),
    Row(
        r"reported an error.*(?:HTTP 404|model.*(?:not found|not exist|not available)|not_found_error)",
        Advice(
            "The service does not know the model. Set one that the account may use.",
            (_agent("Set its model", "model"),),
        ),
    ),
    Row(
        r"reported an error.*(?:HTTP 5\d\d|overloaded|timed? ?out|connection|network|ECONN|ENOTFOUND)",
        Advice("The service or the way to it had a fault, which usually passes. Run it again later."),
    ),
    Row(
        r"reported an error.*(?:refus|policy|HTTP 400|HTTP 403|HTTP 413|permission_error|invalid_request)",
        Advice(
            "The service refused the request. Read what was sent, and change the task or the agent's prompt.",
            (PROMPT, _agent("Change its prompt", "prompt_template")),
        ),
    ),
    Row(
        r"reported an error",
        Advice("The CLI's own words are the reason. If it says nothing to do, run it again once.", (ERROR,)),
    ),
    Row(
        r"^Could not be started:.*working directory",
        Advice(
            "Its working directory is not there. Create it, or name another.",
            (_agent("Change its directory", "working_directory"),),
        ),
    ),
    Row(
        r"^Could not be started:.*(?:recorded stream|\.jsonl|plays )",
        Advice("Its recorded stream is not there. Name one that is.", (_agent("Change its stream", "replay_stream"),)),
    ),
    Row(
        r"^Could not be started:.*prompt of agent .* cannot be rendered",
        Advice("Its prompt is not a valid template. Correct it.", (_agent("Correct its prompt", "prompt_template"),)),
    ),
    Row(
        r"^Could not be started:.*was not found",
        Advice(
            "The CLI is not installed on the worker's host, or elsewhere. Install it, or set CLAUDEOPS_CLAUDE_BIN.",
            (_read("Statuses"),),
        ),
    ),
    Row(
        r"^(?:Could not be started|Ended):.*(?:no space|disk|read-only file system)",
        Advice("The worker's host cannot write. Make room, then run it again.", (_read("the disk fills"),)),
    ),
    Row(
        r"^Could not be started:",
        Advice(
            "The reason says what is missing. `manage.py doctor` on the worker's host checks the rest.",
            (_read("Statuses"),),
        ),
    ),
    Row(
        r"^Not started:",
        Advice(
            "Its schedule asks for something that is not allowed. Change the agent.",
            (_agent("Change the agent", "tier"),),
        ),
    ),
    Row(
        r"ended by SIGKILL",
        Advice(
            "The host ended it, often because memory ran out. See how many sessions run at once "
            "(CLAUDEOPS_SESSION_WORKERS); run it again.",
            (_read("how many processes there are"),),
        ),
    ),
    Row(
        r"^The process was ended by ",
        Advice("Something on the host ended the process: a restart, or a person. Run it again."),
    ),
    Row(
        r"^The process exited with code 0 and without a result",
        Advice("Somebody interrupted the process on its host. Run it again."),
    ),
    Row(
        r"^The process exited with code ",
        Advice("The CLI ended with an error of its own. Read what it wrote; run it again once it is mended.", (ERROR,)),
    ),
    Row(
        r"^The log ends without a result",
        Advice(
            "Its worker died and then its process. What it reported is stored; run it again.",
            (_read("a session is lost"),),
        ),
    ),
    Row(
        r"^Its host .* has sent no heartbeat",
        Advice(
            "Its host is gone. Start its worker, or run this again: another host takes it.", (_read("a host is gone"),)
        ),
    ),
    Row(
        r"^Given up after ",
        Advice(
            "Its log ends every process that reads it. Keep the raw log, and report it as a fault of claudeops.",
            (_read("a session is lost"),),
        ),
    ),
    Row(
        r"^The transcript ends ",
        Advice("It is an imported transcript, and it ends like this. Import it again if the original goes on."),
    ),
)
"""The first row whose pattern is found holds. Run again is a button of every page, so no step repeats it."""

REMARKS: Sequence[Row] = (
    Row(
        r"It asked for escalation, which was not started: .*dry run",
        Advice("In a dry run no escalation starts."),
    ),
    Row(
        r"It asked for escalation, which was not started",
        Advice(
            "It asked for the next tier and did not get it. Allow the tier (CLAUDEOPS_MAX_TIER), or look yourself.",
            (HAND_OVER, _read("Escalation")),
        ),
    ),
    Row(
        r"It asked for escalation, but ",
        Advice("Its request for the next tier could not be read; hand over by hand if it is needed.", (HAND_OVER,)),
    ),
    Row(
        r"tool calls? (?:was|were) denied",
        Advice("Allow the denied tools if the agent needs them.", (_agent("Change its tools", "allowed_tools"),)),
    ),
    Row(
        r"MCP servers not connected",
        Advice("An MCP server was not there; the agent worked without it."),
    ),
)
"""What may stand beside the outcome, also of a completed session; all that are found hold."""

OTHERWISE = Advice("Read its log from the end: the last lines say how far it came.", (ERROR,))
FAILED = (Status.FAILED, Status.TIMED_OUT, Status.STOPPED, Status.LOST)


def advice_for(status: str, reason: str) -> Advice | None:
    """Return what to do about a session that ended with this status and reason; None when there is nothing to do."""
    matches = [row.advice for row in REMARKS if _finds(row, reason)]
    if status in FAILED:
        plain = without_escalation(reason)
        matches.insert(0, next((row.advice for row in TABLE if _finds(row, plain)), OTHERWISE))
    if not matches:
        return None
    steps = dict.fromkeys(step for advice in matches for step in advice.steps)
    return Advice(" ".join(advice.sentence for advice in matches), tuple(steps))


def _finds(row: Row, reason: str) -> bool:
    return re.search(row.pattern, reason, re.IGNORECASE | re.DOTALL) is not None
