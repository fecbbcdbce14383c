"""When agents were last told of their memory files, by a session's prompt or at the start of a subagent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Max
from django.utils import timezone

from memories.models import AgentFile
from sessions_app.models import HookReceipt, InjectionReceipt

LOOKED_BACK = timedelta(days=90)
"""Prompts older than this are not read: their receipts have no index by file."""


def last_injected(files: Sequence[AgentFile]) -> dict[int, datetime]:
    """Return when each file was last told (UTC), by its id; one that was not in 90 days is missing. Two queries."""
    ids = {(file.project_id, file.agent): file.pk for file in files}
    by_file: dict[int, datetime] = {}
    hooks = HookReceipt.objects.filter(project__in={project for project, _ in ids}, event="SubagentStart").order_by()
    for project, agent, at in hooks.values_list("project", "agent").annotate(at=Max("at")):
        if (project, agent) in ids:
            by_file[ids[project, agent]] = at
    receipts = InjectionReceipt.objects.filter(created_at__gt=timezone.now() - LOOKED_BACK).exclude(agent_file={})
    rows = receipts.filter(session__project__in={project for project, _ in ids}).order_by()
    for file, at in rows.values_list("agent_file__file").annotate(at=Max("created_at")):
        if file in ids.values():
            by_file[file] = max(at, by_file.get(file, at))
    return by_file
