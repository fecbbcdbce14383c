"""Tasks of the queue for memories. Each calls domain functions and returns nothing."""

from __future__ import annotations

from django.conf import settings

from memories.curate import triage as triaging
from memories.curate.maintenance import maintain_due
from memories.curate.reflection import reflect_due
from memories.embedding.backfill import backfill
from memories.embedding.install import install_if_missing
from memories.judging import judge_waiting
from memories.lifecycle.gate_decisions import prune as prune_discards
from memories.lifecycle.sweep import sweep as sweep_memories
from memories.llm.batch import TASK_CALLS, TASK_SECONDS
from memories.llm.calls import prune as prune_model_calls
from memories.recall import keyword_index, log, pgvector
from memories.telemetry import prune as prune_telemetry
from memories.telemetry import record


def sweep() -> None:
    sweep_memories(source="schedule")
    prune_model_calls()
    prune_discards()
    prune_telemetry()


def judge() -> None:
    judge_waiting(most_calls=TASK_CALLS, most_seconds=TASK_SECONDS, source="schedule")


def embed() -> None:
    """Install the model if it is missing, make missing vectors, and maintain the vector index on PostgreSQL."""
    install_if_missing()
    backfill(source="schedule")
    pgvector.ensure()


def keep_recall() -> None:
    keyword_index.catch_up()
    if counted := log.count():
        record("memory.recall.counted", component="recall", source="schedule", recalls=counted)


def maintain() -> None:
    """Do the maintenance of the night when it is due, or go on with a run that was interrupted or begun by hand."""
    maintain_due(is_scheduled=settings.CLAUDEOPS_CURATE)


def reflect() -> None:
    """Propose changes of the memory files from what is new, where it is time to."""
    if settings.CLAUDEOPS_CURATE:
        reflect_due()


def triage() -> None:
    """Decide about proposals: by rules, then by a model."""
    if settings.CLAUDEOPS_CURATE:
        triaging.triage(most_calls=TASK_CALLS, most_seconds=TASK_SECONDS)
