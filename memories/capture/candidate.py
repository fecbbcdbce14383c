"""What is handed to the store and what comes back: small values. Pure; knows no database."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

from memories.capture.text import fold, normalise_service


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may become a memory. `confidence` (0..1) counts only where the taxonomy has no first one."""

    category: str
    observation: str
    service: str | None = None
    taxonomy: str = "ops"
    confidence: float | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a candidate comes from.

    `source` is a value of `Source`, `actor` a user name, `agent:<slug>` or `system`; `channel` is how it
    arrived (text, structured, human, import); `at` when it was said (UTC), the time of storing when None.
    """

    source: str
    actor: str
    session_id: int | None = None
    tier: int = 0
    project_id: int | None = None
    agent: str | None = None
    channel: str = "text"
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a candidate.

    `outcome` is created, reinforced, held, discarded or duplicate; `memory_id` the memory it is now part of;
    `contradicted` the ids of those it spoke against; `reason` is in words for a person.
    """

    outcome: str
    memory_id: int | None = None
    contradicted: tuple[int, ...] = ()
    reason: str = ""


def candidate_key(candidate: Candidate) -> str:
    """What makes two candidates of one session the same: SHA-256 (hexadecimal) of scope and folded text."""
    parts = [
        candidate.taxonomy,
        candidate.category,
        normalise_service(candidate.service) or "",
        fold(candidate.observation).lower(),
    ]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()
