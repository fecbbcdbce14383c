"""Recall the memories relevant to a session's task, which come first in its prompt.

When recall fails, the block is that of a session without a task, and the receipt says why.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db import connection, transaction

from memories.models import Memory, Verdict
from memories.recall import Asker, Filters, recall
from memories.taxonomy import OPS

log = logging.getLogger(__name__)

MOST_RELEVANT = 10
BY_CONFIDENCE = "by confidence"


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a session. `text` is an operator's words or an alert; agent and session are for the recall log."""

    text: str
    agent: str | None = None
    session_id: int | None = None


@dataclass(frozen=True, slots=True)
class Relevant:
    """Memories relevant to the task, best first, with a reason each; `failed` says why there are none."""

    memories: tuple[Memory, ...] = ()
    reasons: tuple[str, ...] = ()
    failed: str = ""

    @property
    def otherwise(self) -> str:
        """The reason of a memory that recall did not find."""
        return f"{BY_CONFIDENCE} (recall failed: {self.failed})" if self.failed else BY_CONFIDENCE


def relevant(task: Task, project_id: int | None) -> Relevant:
    """The eligible ops memories relevant to the task's text. Never raises: a session also starts without them.

    The query is not rewritten by a model, so the same task gives the same prompt.
    """
    filters = Filters(project=project_id, agent=task.agent, taxonomy=OPS.slug)
    asker = Asker("injection", f"agent:{task.agent}" if task.agent else "", task.session_id)
    try:
        if connection.in_atomic_block:
            with transaction.atomic():  # a database error must not break the caller's transaction
                hits = recall(task.text, filters, limit=MOST_RELEVANT, asked_by=asker, rewrite=False).hits
        else:
            hits = recall(task.text, filters, limit=MOST_RELEVANT, asked_by=asker, rewrite=False).hits
    except Exception as error:  # no error here may keep a session from starting
        log.exception("recall for a session's prompt failed")
        return Relevant(failed=f"{type(error).__name__}: {error}"[:200])
    scores = {hit.memory_id: hit.score for hit in hits}
    rows = Memory.objects.filter(
        pk__in=scores, taxonomy=OPS.slug, active=True, verdict=Verdict.ALLOW, confidence__gte=OPS.injected_from or 0.0
    )
    found = sorted(rows, key=lambda row: (-scores[row.pk], row.pk))
    return Relevant(tuple(found), tuple(f"relevant to the task: score {scores[row.pk]:.2f}" for row in found))
