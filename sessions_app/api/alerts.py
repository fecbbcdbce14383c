"""`POST /api/alerts`: the webhook for monitoring systems."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Body, Router, Schema, Status
from pydantic import Field

from claudeops.lib.api_errors import Refused, check_names
from memories.access import project_of
from memories.bearer import access_in, needs
from memories.models import Scope
from sessions_app.alerts.forms import AnyForm, Generic
from sessions_app.alerts.receive import receive
from sessions_app.api.routes import agents_of

LARGEST = 256 * 1024
"""Bytes."""

ASKED = {
    "agent": "The slug of the agent that runs it; CLAUDEOPS_ALERT_AGENT by default.",
    "project": "A project's slug; the agent's, or the token's, by default.",
}

router = Router(tags=["alerts"])


class ReceivedOut(Schema):
    """What became of the alert: queued (a new session), joined (its open session) or ignored (it is over)."""

    outcome: str
    message: str
    session: int | None = Field(description="The session of this alert; null when none is open.")
    link: str | None = Field(description="Where the API shows it.")


@router.post(
    "/alerts",
    **needs(Scope.RUN, {202: ReceivedOut, 200: ReceivedOut}, also=ASKED),
    summary="Receive an alert",
)
def alerts(request: HttpRequest, response: HttpResponse, given: Body[AnyForm]) -> Status:
    """Alertmanager, Grafana and Uptime Kuma are recognised by their form; anything else has the generic one.

    202: a session is queued; 200: the same alert has an open session, which it joins, or it is over. At most 256 KB.
    """
    check_names(request, ASKED)
    if len(request.body) > LARGEST:
        raise Refused(413, "too_big", f"The alert has {len(request.body):,} bytes; at most {LARGEST:,} are read.")
    access = access_in(request)
    own: dict[str, Any] = {"agent": given.agent, "project": given.project} if isinstance(given, Generic) else {}
    slug = own.get("agent") or request.GET.get("agent") or settings.CLAUDEOPS_ALERT_AGENT
    if not slug:
        raise Refused(
            422,
            "no_agent",
            "No agent is named for alerts.",
            "Add ?agent=SLUG to the address, or set CLAUDEOPS_ALERT_AGENT.",
            field="agent",
        )
    result = receive(
        given.alert(),
        agent=agents_of(access).named(slug),
        project=project_of(access, own.get("project") or request.GET.get("project")),
        by=access.actor,
        highest=access.max_tier,
    )
    link = reverse("api:session", args=[result.session.pk]) if result.session else None
    if link:
        response["Location"] = link
    session = result.session.pk if result.session else None
    answer = {"outcome": result.outcome, "message": result.message, "session": session, "link": link}
    return Status(202 if result.outcome == "queued" else 200, answer)
