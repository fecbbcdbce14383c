"""Texts that a person stands behind: one decision about a text counts wherever the same text stands.

A person's word about a memory, a proposal, or a line of a file is kept as the text's digest. Other words or numbers are
another text. Taking the memory out, or the decision back, ends it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q
from django.utils.crypto import salted_hmac

from memories.capture.text import fold
from memories.models import Change, Memory, MemoryChange, Verdict, VouchedText, stands_behind

FOR = (Change.CREATED, Change.APPROVED, Change.EDITED, Change.REINFORCED)
AGAINST = (Change.DEACTIVATED, Change.DELETED, Change.RESTORED)
BATCH = 500


def digest_of(text: str) -> str:
    """Return the HMAC-SHA256 (hexadecimal) of a folded text in lower case, by a key derived from SECRET_KEY."""
    return salted_hmac("memories.lifecycle.vouched", fold(text).casefold(), algorithm="sha256").hexdigest()


def vouch(texts: Iterable[str], project: int | None, *, by: str, at: datetime) -> None:
    """Keep that the person `by` stands behind these texts in a project (None: in all). Once a text and project."""
    VouchedText.objects.bulk_create(
        (VouchedText(digest=digest_of(text), project_id=project, by=by[:150], at=at) for text in texts if text),
        ignore_conflicts=True,
        batch_size=BATCH,
    )


def withdraw(texts: Iterable[str], project: int | None) -> None:
    digests = [digest_of(text) for text in texts]
    for start in range(0, len(digests), BATCH):
        VouchedText.objects.filter(digest__in=digests[start : start + BATCH], project=project).delete()


def vouched(texts: Iterable[str], project: int | None) -> dict[str, VouchedText]:
    """Return by text who stands behind it in a project, or in all."""
    digests = {text: digest_of(text) for text in texts}
    whose = Q(project=None) if project is None else Q(project=None) | Q(project=project)
    rows = {row.digest: row for row in VouchedText.objects.filter(whose, digest__in=set(digests.values()))}
    return {text: rows[digest] for text, digest in digests.items() if digest in rows}


def follow(changes: Iterable[MemoryChange]) -> None:
    """Keep what people's changes of memories say about their texts, in the transaction of the changes."""
    told = [
        one for one in changes if one.session_id is None and one.kind in (*FOR, *AGAINST) and stands_behind(one.actor)
    ]
    if not told:
        return
    rows = Memory.objects.in_bulk([one.memory_id for one in told if one.memory_id is not None])
    ended: dict[int | None, list[str]] = {}
    begun: dict[tuple[int | None, str, datetime], list[str]] = {}
    for change in told:
        memory = rows.get(change.memory_id or 0)
        now = (memory.observation, memory.project_id) if memory else ("", None)
        before = (str(change.before.get("observation", now[0])), change.before.get("project_id", now[1]))
        is_out = change.kind in AGAINST or memory is None or not memory.active
        if is_out or before != now:  # a correction, or a move to another project
            ended.setdefault(before[1], []).append(before[0])
        if is_out or memory is None or memory.verdict != Verdict.ALLOW:
            continue
        if change.kind != Change.EDITED or before != now or memory.confirmed_at is not None:
            begun.setdefault((memory.project_id, change.actor, change.at), []).append(memory.observation)
    for project, texts in ended.items():
        withdraw(texts, project)
    for (project, by, at), texts in begun.items():
        vouch(texts, project, by=by, at=at)
