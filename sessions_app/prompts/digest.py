"""Read what a session did, for the prompt of the session that retries or continues it. A bounded part of its log."""

from __future__ import annotations

import json
import re

from django.db.models import Q

from sessions_app.models import LogEntry, LogKind, Session
from sessions_app.prompts.sections import Call, Digest

MOST_CALLS = 20
MOST_FILES = 50
WRITES_READ = 1000
"""Calls of a tool that writes files that are read, the latest ones."""

WRITES = ("Edit", "Write", "MultiEdit", "NotebookEdit")
PATH = re.compile(r'"(?:file_path|notebook_path)":\s*("(?:[^"\\]|\\.)*")')


def digest_of(session: Session) -> Digest | None:
    """Return the digest of the parent of a session that retries or continues it; None for any other."""
    parent = session.parent
    if not session.follows_as or parent is None:
        return None
    calls = LogEntry.objects.filter(session=parent, kind=LogKind.TOOL_USE)
    last = list(calls.order_by("-seq").values_list("seq", "text")[:MOST_CALLS])[::-1]
    results = LogEntry.objects.filter(session=parent, is_error=True, call__in=[seq for seq, _ in last])
    failed = set(results.values_list("call", flat=True))
    files = _changed(parent)
    return Digest(
        kind=session.follows_as,
        session=parent.pk,
        status=parent.get_status_display(),
        exit_code=parent.exit_code,
        reason=parent.status_reason,
        calls=tuple(Call(text, seq in failed) for seq, text in last),
        all_calls=calls.count(),
        files=files[-MOST_FILES:],
        all_files=len(files),
    )


def _changed(session: Session) -> tuple[str, ...]:
    """Return the files that a session's tools wrote, each once, in the order of their last change."""
    begins = Q()
    for name in WRITES:
        begins |= Q(text__startswith=f"{name}: ")
    rows = LogEntry.objects.filter(begins, session=session, kind=LogKind.TOOL_USE)
    texts = list(rows.order_by("-seq").values_list("text", flat=True)[:WRITES_READ])
    return tuple(dict.fromkeys(path for text in texts if (path := path_in(text))))[::-1]


def path_in(text: str) -> str:
    """Return the file that a call of a writing tool names; empty when the entry was cut before it."""
    match = PATH.search(text)
    try:
        return str(json.loads(match[1])) if match else ""
    except ValueError:
        return ""
