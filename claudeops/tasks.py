"""Tasks of the queue for the project."""

from __future__ import annotations

import logging

from django.conf import settings
from django.utils import timezone

from claudeops import otlp
from claudeops.backups import make
from claudeops.backups.folder import BackupError, is_daily_on
from claudeops.purge import run
from claudeops.purge.choice import PurgeError
from memories.models import RecordLevel
from memories.telemetry import record

logger = logging.getLogger(__name__)


def backup() -> None:
    """Make the backup of the day, unless there is one, or none is wanted, or another process is at it."""
    if not is_daily_on():
        return
    try:
        made = make.make_daily()
    except BackupError as error:
        if error.code != "busy":
            record("backup.make.failed", component="backups", source="schedule", success=False, error=error.code)
            raise
        logger.info("no backup was made now: %s", error)
        return
    if made:
        logger.info("backup %s: %s bytes, removed: %s", made.path, made.manifest.size, made.removed or "none")
        if made.manifest.unreadable:
            logger.warning("backup %s: %s files cannot be read", made.path, len(made.manifest.unreadable))
        record(
            "backup.make.completed",
            component="backups",
            source="schedule",
            level=RecordLevel.WARNING if made.manifest.unreadable else RecordLevel.INFO,
            duration_ms=int((timezone.now() - made.manifest.began).total_seconds() * 1000),
            bytes=made.manifest.size,
            files=len(made.manifest.files),
            linked=made.linked,
            removed=len(made.removed),
            unreadable=len(made.manifest.unreadable),
        )


def purge(pk: int | None = None) -> None:
    """Carry out one purge; without `pk` go on with those that were begun on this host and are not done."""
    run.drop_old()
    for one in [pk] if pk is not None else run.unfinished(settings.CLAUDEOPS_HOST):
        try:
            run.carry_out(one)
        except PurgeError as error:
            logger.warning("purge %s is not done: %s", one, error)


def count_purge(pk: int) -> None:
    """Count what a planned purge would remove."""
    run.count(pk)


def export_telemetry() -> None:
    """Export telemetry by OTLP, where an address is set."""
    done = otlp.export()
    if done.spans:
        logger.info("telemetry exported: %s spans, %s metrics", done.spans, done.metrics)
