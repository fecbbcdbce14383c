"""What to do: every way a session can end has an answer of its own, and every answer leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from django.template.defaultfilters import slugify

from claudeops.env import BASE_DIR
from sessions_app.models import Agent, Status
from sessions_app.queries.advice import OTHERWISE, REMARKS, TABLE, Kind, advice_for
from sessions_app.runner.outcome import ERROR_SUBTYPES, TURNS, EndedBy, Ending, LastResult, outcome

API_ERRORS = {
    "not signed in": "Not logged in · Please run /login",
    "a wrong key": "Invalid API key · Fix external API key",
    "no credit": "Credit balance is too low",
    "the usage limit": "Claude AI usage limit reached|1795000000",
    "the limit of five hours": "You've hit your session limit · resets 3pm",
    "too long": "Prompt is too long",
    "refused": "API Error: Claude Code is unable to respond to this request, which appears to violate our Usage Policy",
    "overloaded": "API Error: Overloaded",
    "the network": "API Error: Connection error.",
    "no words": "",
}
ENDINGS = {
    **{name: Ending(1, LastResult(name, True, errors=("said so",))) for name in ERROR_SUBTYPES},
    **{name: Ending(1, LastResult("success", True, text)) for name, text in API_ERRORS.items()},
    **{
        f"HTTP {n}": Ending(1, LastResult("success", True, "x", (), n))
        for n in (400, 401, 403, 404, 413, 429, 500, 529)
    },
    **{f"transcript {turn}": Ending(None, None, turn=turn) for turn in TURNS},
    "stop": Ending(143, None, EndedBy.STOP, "anna"),
    "deadline": Ending(143, None, EndedBy.DEADLINE, timeout=600),
    "lost": Ending(None, None),
    "SIGKILL": Ending(-9, None),
    "SIGTERM": Ending(143, None),
    "SIGINT": Ending(0, None),
    "stderr": Ending(1, None, stderr="error: unknown option '--nope'"),
    "a code after the result": Ending(2, LastResult("success", False)),
}
# Reasons that other modules write: the reaper, the start of a session, the queue, its schedule.
WRITTEN_ELSEWHERE = [
    (Status.LOST, "Its host nuc-2 has sent no heartbeat since 2026-11-24 03:00 UTC."),
    (
        Status.FAILED,
        "Given up after 12 attempts to follow it; its log was ingested up to byte 7. The raw log is kept: x.",
    ),
    (Status.FAILED, "Could not be started: claude was not found."),
    (Status.FAILED, "Could not be started: The working directory of agent watch does not exist: /x. Create it, or …"),
    (Status.FAILED, "Could not be started: A replay needs a recorded stream. Give --stream FILE, or choose an agent …"),
    (Status.FAILED, "Could not be started: The prompt of agent watch cannot be rendered: x. Correct it in the admin …"),
    (Status.FAILED, "Could not be started: [Errno 28] No space left on device: 'x'"),
    (Status.FAILED, "Could not be started: anything else"),
    (Status.FAILED, "Not started: Tier 3 is above the highest allowed tier, 1. Ask for tier 1 or lower."),
    (Status.STOPPED, "Stopped by anna before it started."),
]


def test_every_outcome_of_a_run_that_went_wrong_has_an_answer_of_its_own(subtests):
    for name in ENDINGS:
        with subtests.test(str(name)):
            status, reason = outcome(ENDINGS[name])
            advice = advice_for(status, reason)
            if status == Status.COMPLETED:
                assert advice is None
            else:
                assert advice is not None
                assert advice.sentence != OTHERWISE.sentence, reason


def test_what_other_modules_write_has_an_answer_too(subtests):
    for status, reason in WRITTEN_ELSEWHERE:
        with subtests.test(str(status)):
            advice = advice_for(status, reason)
            assert advice is not None
            assert advice.sentence != OTHERWISE.sentence


def test_no_row_stands_in_the_shadow_of_an_earlier_one():
    reasons = [outcome(ending) for ending in ENDINGS.values()]
    reached = {advice_for(status, reason) for status, reason in [*reasons, *WRITTEN_ELSEWHERE]}
    assert [row.pattern for row in TABLE if row.advice not in reached] == []


def test_an_escalation_that_was_not_started_is_said_beside_the_reason():
    reason = (
        "The session reached its limit of turns. It asked for escalation, which was not started: tier 2 is the highest"
    )
    advice = advice_for(Status.FAILED, reason)
    assert advice is not None
    assert advice.sentence.startswith("It needed more turns")
    assert "It asked for the next tier" in advice.sentence
    assert [step.kind for step in advice.steps].count(Kind.HAND_OVER) == 1


def test_what_an_agent_wrote_as_its_reason_does_not_choose_the_answer():
    reason = "Ended at its time limit of 60 seconds. Escalated to session 7: the usage limit; Not logged in"
    advice = advice_for(Status.TIMED_OUT, reason)
    assert advice is not None
    assert advice.sentence.startswith("It needed more time")


def test_a_good_run_has_an_answer_only_for_its_remarks():
    assert advice_for(Status.COMPLETED, "") is None
    advice = advice_for(Status.COMPLETED, "1 tool call was denied: Bash: rm -rf x.")
    assert advice is not None
    assert advice.steps[0].target == "allowed_tools"


def test_every_step_leads_to_a_field_a_tab_or_a_heading_that_is_there():
    headings = re.findall(r"^#+ (.+)$", Path(BASE_DIR / "docs/operating.md").read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {slugify(heading.replace("'", "")) for heading in headings}
    fields = {field.name for field in Agent._meta.get_fields()}
    steps = {step for row in (*TABLE, *REMARKS) for step in row.advice.steps}
    for step in steps:
        if step.kind is Kind.AGENT:
            assert step.target in fields
        elif step.kind is Kind.READ:
            assert step.label in headings
            assert slugify(step.target.replace("'", "")) in anchors
        elif step.kind is Kind.TAB:
            assert step.target in ("prompt", "answer")
