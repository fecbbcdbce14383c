"""Put a proposal into the words and the form of a task item: plain JSON, a GitHub issue, a task of Todoist. Pure.

Its text was written by an agent: it is masked and cut, and mentions nobody and links nowhere at the other end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from claudeops.lib.secrets import mask
from memories.injection.escape import safe

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
