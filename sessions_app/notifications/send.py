"""Send a task item for each proposal that waits for a person, at least once.

A proposal is claimed by a conditional UPDATE before its item is sent, and marked when it has arrived. A worker that
dies in between lets its claim end, and the item is sent again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from claudeops.lib.http import RequestFailed, post_json
from memories.models import Proposal, ProposalState, Tier
from memories.telemetry import record
from sessions_app.notifications.items import Item, compose

log = logging.getLogger(__name__)

SECONDS = 10.0
"""Of one request."""
MOST_SECONDS = 120.0
"""After which a run begins no other request: the queue ends a task after 300 seconds."""
CLAIM = timedelta(minutes=2)
AGAIN_AFTER = timedelta(minutes=15)
"""After a failure: at most 672 attempts in the 7 days that a proposal waits."""
MAX_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Sent:
    """How many items arrived. `why` says why the run ended before the last one, "" when it did not."""

    count: int = 0
    why: str = ""


def send_due(*, at: datetime | None = None) -> Sent:
    """Send what is due. `at` (UTC; now when None) is the time of claims. The first failure ends the run."""
    if not settings.CLAUDEOPS_TASK_WEBHOOK:
        return Sent()
    begun, count, why = time.monotonic(), 0, ""
    while time.monotonic() - begun < MOST_SECONDS and (row := _claim(at or timezone.now())) is not None:
        if why := _send(row):
            Proposal.objects.filter(pk=row.pk, notified_at=None).update(
                claimed_until=(at or timezone.now()) + AGAIN_AFTER
            )
            log.warning("the task item of proposal %s was not sent: %s", row.pk, why)
            break
        Proposal.objects.filter(pk=row.pk).update(notified_at=at or timezone.now())
        count += 1
    if count or why:
        took = int((time.monotonic() - begun) * 1000)
        action = "memory.notify.failed" if why else "memory.notify.completed"
        record(
            action,
            component="notifications",
            source="schedule",
            success=not why,
            duration_ms=took,
            sent=count,
            form=settings.CLAUDEOPS_TASK_FORMAT,
            why=why,
        )
    return Sent(count, why)


def _due() -> Q:
    return Q(state=ProposalState.WAITING, tier=Tier.PERSON, notified_at=None)


def _claim(at: datetime) -> Proposal | None:
    free = Q(claimed_until=None) | Q(claimed_until__lte=at)
    for row in Proposal.objects.filter(_due(), free).select_related("file__project").order_by("pk")[:10]:
        if Proposal.objects.filter(_due(), free, pk=row.pk).update(claimed_until=at + CLAIM):
            return row
    return None


def _send(row: Proposal) -> str:
    """Send the item of a proposal; return why it did not arrive, "" when it did. Nothing of the answer is quoted."""
    message = compose(settings.CLAUDEOPS_TASK_FORMAT, item_of(row), settings.CLAUDEOPS_TASK_TOKEN)
    try:
        status, _ = post_json(
            settings.CLAUDEOPS_TASK_WEBHOOK, message.document, message.headers, seconds=SECONDS, max_bytes=MAX_BYTES
        )
    except RequestFailed as failed:
        return str(failed)
    if 300 <= status < 400:
        return "it sends elsewhere, which is not followed"
    return "" if 200 <= status < 300 else f"HTTP {status}"


def item_of(row: Proposal) -> Item:
    project = row.file.project
    path = f"{reverse('desk')}?item=proposals-{row.pk}"
    base = settings.CLAUDEOPS_PUBLIC_URL.rstrip("/")
    return Item(
        pk=row.pk,
        uuid=str(row.uuid),
        kind=row.kind,
        section=row.section,
        text=row.text,
        target=row.target,
        trust=row.get_trust_display(),
        project=project.slug if project else "",
        expires_at=row.expires_at,
        link=f"{base}{path}" if base else f"manage.py proposal show {row.pk}",
    )
