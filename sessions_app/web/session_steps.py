"""What to do about a session, as links and buttons for the person who looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from sessions_app.escalation import may_hand_over
from sessions_app.models import Session
from sessions_app.queries.advice import Kind, Step, advice_for

DOCS = "docs/operating.md"


@dataclass(frozen=True, slots=True)
class Do:
    """One step: a link (`url`), a button that posts to `post`, or words alone."""

    label: str
    url: str = ""
    post: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    sentence: str
    steps: tuple[Do, ...]


def steps_for(session: Session, user: Any) -> Steps | None:
    """Return the advice for an ended session with the steps that `user` may take; None when nothing is to be done."""
    if session.is_open:
        return None
    advice = advice_for(session.status, session.status_reason)
    if advice is None:
        return None
    steps = (_step(step, session, user) for step in advice.steps)
    return Steps(advice.sentence, tuple(step for step in steps if step is not None))


def _step(step: Step, session: Session, user: Any) -> Do | None:
    if step.kind is Kind.AGENT:
        if session.agent_id is None or not user.has_perm("sessions_app.change_agent"):
            return None
        return Do(
            step.label, reverse("admin:sessions_app_agent_change", args=[session.agent_id]) + f"#id_{step.target}"
        )
    if step.kind is Kind.HAND_OVER:
        if not user.has_perm("sessions_app.run_session") or may_hand_over(session):
            return None
        return Do(f"Hand over to tier {session.tier + 1}", post=reverse("session-hand-over", args=[session.pk]))
    if step.kind is Kind.TAB:
        if step.target == "answer" and not (session.error or session.response or session.structured):
            return None
        return Do(step.label, reverse("session", args=[session.pk]) + f"?tab={step.target}#tabs")
    return Do(f"{DOCS}, “{step.label}”")
