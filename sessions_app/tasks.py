"""The tasks of django-q2 for sessions. Delivered at least once: each one claims its work before it does it."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from claudeops import __version__
from memories.curate import files as memory_files
from memories.files import capture
from memories.files.sync import sync_project
from memories.library import journal, skills
from memories.library.decisions import index as decisions
from memories.models import Project
from memories.observe import pipeline
from sessions_app import learning, notifications, queue, reaper, summaries
from sessions_app.credit import outcome
from sessions_app.hooks import door
from sessions_app.log import pruning
from sessions_app.models import Session
from sessions_app.queue import tasks
from sessions_app.runner import handover, run
from sessions_app.transcripts import arrivals, sweep
from sessions_app.transcripts.turns import repeats, turns_of

logger = logging.getLogger(__name__)

FORGET_TASKS_AFTER = timedelta(days=30)


def run_session(session_id: int) -> int | None:
    """Run the first session in the queue, which need not be the one for which the task was sent."""
    for candidate in queue.in_line(session_id):
        if handover.closing():
            break
        if run.run_session(candidate) is not None:
            return candidate
    if handover.closing():
        queue.give_back(session_id)
    return None


def follow_session(session_id: int) -> int | None:
    if handover.closing():
        return None  # the reaper sends the task again
    return session_id if reaper.take_over(session_id) is not None else None


def tick() -> None:
    queue.tick()
    queue.dispatch()


def reap() -> None:
    """Reap sessions without a follower, on this host and on every other host with workers."""
    queue.ask_elsewhere(tasks.REAP)
    reap_here()


def reap_here() -> None:
    """Reap the sessions of this host, and those of hosts that are gone."""
    reaped = reaper.reap(source="schedule")
    if reaped.closed or reaped.requeued or reaped.lost or reaped.failed or reaped.ended:
        logger.info("reaped: %s", reaped)


def learn(project_id: int) -> None:
    """Learn from the runs of a project; one that was deleted meanwhile teaches nothing."""
    project = Project.objects.filter(pk=project_id).first()
    if project is not None:
        lessons = learning.learn(project)
        logger.info("project %s: %s lessons: %s", project, len(lessons), [one.outcome for one in lessons])


def sync_files() -> None:
    """Sync the agent files of all projects, on this host and on every other one, where the repositories may be."""
    queue.ask_elsewhere(tasks.SYNC_HERE)
    sync_files_here()


def sync_files_here() -> None:
    failed = []
    for project_id in Project.objects.exclude(path="").order_by("pk").values_list("pk", flat=True):
        try:
            sync_files_of(project_id)
        except Exception:  # the others go on; the task ends as failed
            logger.exception("project %s: its agent files could not be synced", project_id)
            failed.append(project_id)
    if failed:
        raise RuntimeError(f"The agent files of the projects {failed} could not be synced.")


def sync_files_of(project_id: int) -> None:
    """Sync the agent files of a project. A repository that is not here may be on another host, when there is one."""
    project = Project.objects.filter(pk=project_id).exclude(path="").first()
    if project is None or (not Path(project.path).is_dir() and set(queue.living_hosts()) - {settings.CLAUDEOPS_HOST}):
        return
    results = [one for one in sync_project(project) if one.changed or one.problem]
    decisions.sync(project)
    skills.sync(project)
    if results:
        logger.info("project %s: agent files synced: %s", project, results)


def handle_hook(event: str, stored: dict[str, Any]) -> None:
    door.handle_later(event, stored)


def observe_session(session_id: int) -> str:
    """Take in the log of a session that has ended. It may be gone, or taken in already."""
    session = Session.objects.select_related("agent", "project").filter(pk=session_id).first()
    arrival = arrivals.see_session(session) if session else None
    return f"{arrival.outcome}: {arrival.why}" if arrival else "gone"


def sweep_transcripts() -> None:
    """Look through the folders of transcripts, on this host and on every other one with workers."""
    queue.ask_elsewhere(tasks.SWEEP)
    sweep_transcripts_here()


def sweep_transcripts_here() -> None:
    swept = sweep.sweep()
    if swept.taken or swept.unread:
        logger.info("transcripts: %s", swept)


def observe_due() -> None:
    """Wake the hosts that have parts of transcripts which may be observed now."""
    for host in pipeline.due_hosts():
        queue.enqueue_observe(host)


def observe_here() -> None:
    """Observe the transcripts of this host, unless another process does."""
    with pipeline.draining(settings.CLAUDEOPS_HOST) as mine:
        if not mine:
            return
        counts = pipeline.drain(settings.CLAUDEOPS_HOST, turns_of, repeats)
    if counts != pipeline.Drained():
        logger.info("observed: %s", counts)


def keep_journal() -> None:
    """Commit what was written to the journals, on this host and on every other one with workers."""
    queue.ask_elsewhere(tasks.JOURNAL)
    keep_journal_here()


def keep_journal_here() -> None:
    what = f"Version {__version__} runs on {settings.CLAUDEOPS_HOST}."
    skills.sync(None)
    journal.note("deploy", "claudeops", what, key=f"claudeops {__version__} {settings.CLAUDEOPS_HOST}")
    journal.catch_up()
    journal.commit_due()


def keep_summaries() -> None:
    """Write the summaries of the last day and week into the vault of this host."""
    summaries.keep_due(settings.CLAUDEOPS_PUBLIC_URL, at=timezone.now())


def keep_memory_files() -> None:
    """Read and write the MEMORY.md files, on this host and on every other one that has some."""
    if not settings.CLAUDEOPS_CURATE:
        return
    others = [host for host in memory_files.hosts() if host != settings.CLAUDEOPS_HOST]
    gone = [host for host in others if not queue.enqueue_promote(host)]
    if gone:
        memory_files.adopt(gone)
    promote_here()


def promote_here() -> None:
    result = memory_files.keep_here()
    if result.done or result.waiting:
        logger.info("MEMORY.md: %s", result)


def send_task_items() -> None:
    """Send a task item for each proposal that waits for a person, when CLAUDEOPS_TASK_WEBHOOK says where."""
    sent = notifications.send_due()
    if sent.count:
        logger.info("task items: %s sent", sent.count)


def adjust_relevance() -> None:
    """Learn the relevance of project memories, when CLAUDEOPS_ADJUST_RELEVANCE says so."""
    if settings.CLAUDEOPS_ADJUST_RELEVANCE:
        outcome.adjust_relevance()


def prune() -> None:
    at = timezone.now()
    pruned = pruning.prune(at=at)
    captures = capture.forget_old(at=at)
    untaken, failures = tasks.forget(at - FORGET_TASKS_AFTER)
    logger.info("pruned: %s, %s captures, %s untaken tasks, %s failed tasks", pruned, captures, untaken, failures)
