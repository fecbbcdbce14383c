"""Tasks of the queue for the project."""

from __future__ import annotations

import logging

from django.conf import settings
from django.utils import timezone

from claudeops.features import otlp
from claudeops.features.backups import make
from claudeops.features.backups.folder import BackupError, is_daily_on
from claudeops.features.purge import run
from claudeops.features.purge.choice import PurgeError
from memories.models import RecordLevel
from memories.telemetry import record

logger = logging.getLogger(__name__)


def backup() -> None:
    """Make the backup of the day, unless there is one, or none is wanted, or another process is at it."""
    if not is_daily_on():
        return
    try:
        new_backup = make.make_daily()
    except BackupError as error:
        if error.code != "busy":
            record("backup.make.failed", component="backups", source="schedule", success=False, error=error.code)
            raise
        logger.info("no backup was made now: %s", error)
        return
    if new_backup:
        logger.info(
            "backup %s: %s bytes, removed: %s", new_backup.path, new_backup.manifest.size, new_backup.removed or "none"
        )
        if new_backup.manifest.unreadable:
            logger.warning("backup %s: %s files cannot be read", new_backup.path, len(new_backup.manifest.unreadable))
        record(
            "backup.make.completed",
            component="backups",
            source="schedule",
            level=RecordLevel.WARNING if new_backup.manifest.unreadable else RecordLevel.INFO,
            duration_ms=int((timezone.now() - new_backup.manifest.began).total_seconds() * 1000),
            bytes=new_backup.manifest.size,
            files=len(new_backup.manifest.files),
            linked=new_backup.linked,
            removed=len(new_backup.removed),
            unreadable=len(new_backup.manifest.unreadable),
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
    report = otlp.export()
    if report.spans:
        logger.info("telemetry exported: %s spans, %s metrics", report.spans, report.metrics)
