"""Know history that a fork or a resume copied: a record that another session's log or transcript had counts there.

A record is known by its `uuid` and by what it says, so that nobody can keep a record of another from being read by
naming its `uuid`. Without one its time stamp and what it says count, with the id of the model's message.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from memories.models import Transcript
from sessions_app.models import KnownRecord, Session

FLAGS = ("isSidechain", "isMeta", "isCompactSummary")
"""Fields that decide whose words a record's are."""


def digest_of(record: Mapping[str, Any], owner: type[Session] | type[Transcript]) -> int | None:
    """Return a number of 63 bits that a record has in each log (or transcript) that holds it.

    None for one that says nothing, or that has neither an id nor a time stamp.
    """
    content, own_id, at = record.get("message", record.get("attachment")), record.get("uuid"), record.get("timestamp")
    if not isinstance(content, dict) or not (own_id or at):
        return None
    text = {name: content.get(name) for name in ("role", "content")} if "message" in record else content
    named = ["uuid", own_id] if own_id else ["time", at, content.get("id")]
    flags = [bool(record.get(name)) for name in FLAGS]
    try:
        whole = json.dumps([owner.__name__, record.get("type"), named, flags, text], sort_keys=True)
    except (RecursionError, TypeError, ValueError):
        return None
    return int.from_bytes(hashlib.sha256(whole.encode()).digest()[:8]) >> 1


def known_elsewhere(owner: Session | Transcript | None, digests: Collection[int]) -> set[int]:
    """Return which of these records another log (or transcript) than `owner` had."""
    rows = KnownRecord.objects.exclude(**_owned(owner)) if owner is not None else KnownRecord.objects.all()
    return set(rows.in_bulk(list(digests)))


def keep(owner: Session | Transcript, digests: Collection[int]) -> set[int]:
    """Note these records as the owner's, in the transaction that stores what they say; return those of others."""
    rows = [KnownRecord(digest=digest, **_owned(owner)) for digest in sorted(digests)]
    KnownRecord.objects.bulk_create(rows, ignore_conflicts=True)
    return known_elsewhere(owner, digests)


def _owned(owner: Session | Transcript) -> dict[str, Any]:
    return {"session" if isinstance(owner, Session) else "transcript": owner}
