"""Tell a person's task list what waits for a person: one item for each proposal, by a webhook.

The text of an item was written by an agent: it is masked and cut, and mentions nobody and links nowhere at the other
end.

A proposal is claimed by a conditional UPDATE before its item is sent, and marked when it has arrived. A worker that
dies in between lets its claim end, and the item is sent again.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from claudeops.lib.http import RequestFailed, post_json
from claudeops.lib.lease import Lease
from claudeops.lib.secrets import mask
from memories.injection.escape import safe
from memories.models import Proposal, ProposalState, Tier
from memories.telemetry import record

JSON, GITHUB, TODOIST = "json", "github", "todoist"
LONGEST_TITLE, LONGEST_TEXT = 120, 600
"""Characters of a proposal's text in a title, and in the rest of an item."""
MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|~<>])")
MENTION = re.compile(r"@(?=\w)")
ADDRESS = re.compile(r"(?i)\b(https?|ftp|mailto)(?=:)|\bwww(?=\.)")
JOINER = "\u2060"
"""An invisible character, which breaks a mention or an address."""


@dataclass(frozen=True, slots=True)
class Item:
    """A proposal to be reviewed. `link` is an address, or a command where this installation has no address."""

    pk: int
    uuid: str
    kind: str
    section: str
    text: str
    target: str
    trust: str
    project: str
    expires_at: datetime | None
    link: str


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent: a JSON document and the headers of its form."""

    document: dict[str, Any]
    headers: dict[str, str]


def compose(form: str, item: Item, token: str = "") -> Message:
    """Return the message of `item` in the form json, github or todoist. Raises KeyError for another form."""
    return FORMS[form](item, token)


def title_of(item: Item) -> str:
    return f"Review memory proposal: {_cut(_inert(item.text or item.target), LONGEST_TITLE)}"


def _json(item: Item, token: str) -> Message:
    document = {
        "event": "memory.proposal.review",
        "title": title_of(item),
        "link": item.link,
        "proposal": {
            "id": item.pk,
            "uuid": item.uuid,
            "kind": item.kind,
            "section": item.section,
            "text": _shown(item.text),
            "target": _shown(item.target),
            "trust": item.trust,
            "project": item.project or None,
            "expires_at": item.expires_at.isoformat() if item.expires_at else None,
        },
    }
    return Message(document, _bearer(token))


def _github(item: Item, token: str) -> Message:
    """An issue of a repository: POST /repos/OWNER/NAME/issues of GitHub's REST API, version 2022-11-28."""
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28", "User-Agent": "claudeops"}
    return Message({"title": title_of(item), "body": _body(item)}, headers | _bearer(token))


def _todoist(item: Item, token: str) -> Message:
    """A task: POST /api/v1/tasks of Todoist's API, whose content and description are Markdown."""
    document = {"content": _marked(title_of(item)), "description": _body(item)}
    return Message(document, _bearer(token))


FORMS: Mapping[str, Callable[[Item, str], Message]] = {JSON: _json, GITHUB: _github, TODOIST: _todoist}


def _body(item: Item) -> str:
    rows = [
        f"Section: {item.section}" + (f", project {item.project}" if item.project else ""),
        f"Trust: {item.trust}",
        *([f"Expires: {item.expires_at:%Y-%m-%d %H:%M} UTC"] if item.expires_at else []),
        f"Decide: {item.link}",
    ]
    # Four spaces make a block of code, in which nothing is a mention, a link or a heading.
    texts = [("Removes" if item.kind == "remove" else "Replaces", item.target), ("Writes", item.text)]
    blocks = [f"{words}:\n\n    {_shown(text)}" for words, text in texts if text]
    return "\n\n".join(["\n".join(f"- {row}" for row in rows), *blocks])


def _shown(text: str) -> str:
    return _cut(_inert(text), LONGEST_TEXT)


def _inert(text: str) -> str:
    """Return a text as one line without credentials, that mentions nobody and holds no address to follow."""
    plain = safe(mask(text))
    return ADDRESS.sub(lambda found: f"{found[0]}{JOINER}", MENTION.sub(f"@{JOINER}", plain))


def _marked(text: str) -> str:
    return MARKUP.sub(r"\\\1", text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


log = logging.getLogger(__name__)

SECONDS = 10.0
"""Of one request."""
MOST_SECONDS = 120.0
"""After which a run begins no other request: the queue ends a task after 300 seconds."""
LEASE = Lease(timedelta(minutes=2))
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
    for row in Proposal.objects.filter(_due(), LEASE.free(at)).select_related("file__project").order_by("pk")[:10]:
        if LEASE.take(Proposal.objects.filter(_due(), pk=row.pk), at):
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
    path = f"{reverse('inbox')}?item=proposals-{row.pk}"
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
