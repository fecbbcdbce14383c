"""Recall the memories relevant to a session's task: they come first in its prompt, in a part of the budget."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from django.db import connection, transaction
from django.db.models import Q

from memories.models import Memory, Verdict
from memories.recall import Asker, Filters, recall
from memories.taxonomy import OPS

log = logging.getLogger(__name__)

MOST_RELEVANT = 10
LEAST_CONFIDENCE = 0.5
"""Lowest confidence of a memory that a task brings into the prompt, unless a person approved it."""
RELEVANT_SHARE = 0.4
"""Part of the budget for what a task brings; the rest is filled by confidence."""
BY_CONFIDENCE = "by confidence"


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a session. `text` is an operator's words or an alert; agent and session are for the recall log.

    `is_preview`: no session gets the prompt, so the recall is not logged and counts for no memory.
    """

    text: str
    agent: str | None = None
    session_id: int | None = None
    is_preview: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The scores of a task's recall by memory, best first; `failed` says why there are none."""

    scores: Mapping[int, float] = field(default_factory=dict)
    failed: str = ""

    @property
    def otherwise(self) -> str:
        """The reason of a memory that recall did not bring."""
        return f"{BY_CONFIDENCE} (recall failed: {self.failed})" if self.failed else BY_CONFIDENCE

    def reason(self, memory_id: int) -> str:
        return f"relevant to the task: score {self.scores[memory_id]:.2f}"


def relevant(task: Task, project_id: int | None) -> Found:
    """Recall the ops memories relevant to the task. Never raises; not rewritten, so that a task has one prompt."""
    filters = Filters(project=project_id, agent=task.agent, taxonomy=OPS.slug, trusted_only=True)
    asker = Asker("injection", f"agent:{task.agent}" if task.agent else "", task.session_id)
    asked_by = None if task.is_preview else asker
    try:
        # A database error must not break the caller's transaction.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            hits = recall(task.text, filters, limit=MOST_RELEVANT, asked_by=asked_by, rewrite=False).hits
    except Exception as error:  # no error here may keep a session from starting
        log.exception("recall for a session's prompt failed")
        return Found(failed=f"{type(error).__name__}: {error}"[:200])
    return Found({hit.memory_id: hit.score for hit in hits})


def memories_of(found: Found) -> list[Memory]:
    """Return the eligible memories of a recall, best first.

    Below LEAST_CONFIDENCE only those that a person approved: the text of an alert must not bring what is doubtful.
    """
    if not found.scores:
        return []
    sure = Q(confidence__gte=LEAST_CONFIDENCE) | Q(approved_at__isnull=False)
    rows = Memory.objects.trusted().filter(
        sure,
        pk__in=found.scores,
        taxonomy=OPS.slug,
        active=True,
        verdict=Verdict.ALLOW,
        surface="",  # a window of its own decides
        confidence__gte=OPS.injected_from or 0.0,
    )
    return sorted(rows, key=lambda row: (-found.scores[row.pk], row.pk))
