"""System checks of the project's configuration, each with a hint."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register

from claudeops.env import unknown
from claudeops.features.backups.folder import unfinished_file
from claudeops.lib import database_version


@register("claudeops")
def data_folder_is_writable(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.E001"""
    folder = Path(settings.CLAUDEOPS_DATA_DIR)
    # A missing folder is created when it is needed, in its nearest existing parent.
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return []
    except OSError as error:
        return [
            Error(
                f"The data folder {folder} cannot be written: {error.strerror}.",
                hint="Make it writable for the user that runs claudeops, or set CLAUDEOPS_DATA_DIR to another folder.",
                id="claudeops.E001",
            )
        ]


@register("claudeops")
def sqlite_transactions_are_immediate(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.E002: in SQLite's default mode a transaction that reads first fails with `database is locked`."""
    return [
        Error(
            f"The SQLite database {alias!r} does not begin its transactions with IMMEDIATE.",
            hint="Remove transaction_mode from DATABASE_URL: workers would lose writes to 'database is locked'.",
            id="claudeops.E002",
        )
        for alias, database in settings.DATABASES.items()
        if database["ENGINE"] == "django.db.backends.sqlite3"
        and str(database.get("OPTIONS", {}).get("transaction_mode", "")).upper() != "IMMEDIATE"
    ]


@register("claudeops")
def no_restore_is_unfinished(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.E003: half of the data may be of the backup and half of before."""
    if not unfinished_file().exists():
        return []
    return [
        Error(
            "A restore was interrupted; the data folder holds parts of two states.",
            hint="Run it again: manage.py restore BACKUP --overwrite",
            id="claudeops.E003",
        )
    ]


@register(checks.Tags.database)
def database_is_of_this_version(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.E004: `migrate` runs it, and would fail at the first table that is there already."""
    if "default" not in (kwargs.get("databases") or ()) or not database_version.is_earlier():
        return []
    return [Error(database_version.EARLIER, hint=database_version.EXPORT, id="claudeops.E004")]


@register("claudeops")
def variables_are_known(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.W001: a misspelt variable has no effect."""
    return [
        checks.Warning(
            f"The environment sets {name}, which is not a variable of claudeops.",
            hint=f"Did you mean {nearest}?" if nearest else "docs/settings.md has all variables.",
            id="claudeops.W001",
        )
        for name, nearest in unknown(os.environ)
    ]


@register("claudeops")
def clients_have_addresses(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.W002: behind a proxy all clients would share one limit on sign-ins."""
    if not settings.CLAUDEOPS_TRUST_PROXY or settings.CLAUDEOPS_TRUSTED_PROXIES:
        return []
    return [
        checks.Warning(
            "A proxy is trusted, but CLAUDEOPS_TRUSTED_PROXIES is 0: sign-in limits take its address for everybody's.",
            hint="Let the proxy append to X-Forwarded-For, and set CLAUDEOPS_TRUSTED_PROXIES to the number of proxies.",
            id="claudeops.W002",
        )
    ]
