"""System checks of the project: what a person can get wrong, with a hint."""

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


@register("claudeops")
def data_folder_is_writable(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.E001"""
    folder = Path(settings.CLAUDEOPS_DATA_DIR)
    # A folder that is not there yet is made at first need, in the nearest one that is.
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
    """claudeops.E002: in SQLite's default mode a transaction that reads first loses to `database is locked`."""
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
def queue_name_is_known(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.E003: a cluster of any other name serves a queue nobody fills."""
    name = os.environ.get("Q_CLUSTER_NAME", "")
    known = [settings.Q_CLUSTER["name"], *settings.Q_CLUSTER["ALT_CLUSTERS"]]
    if not name or name in known:
        return []
    return [
        Error(
            f"Q_CLUSTER_NAME is {name!r}; there is no such queue.",
            hint=f"Allowed are {', '.join(known)}. `manage.py runworker` sets it by itself.",
            id="claudeops.E003",
        )
    ]


@register("claudeops")
def variables_are_known(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """claudeops.W001: a misspelt variable would be ignored in silence."""
    return [
        checks.Warning(
            f"The environment sets {name}, which nothing reads.",
            hint=f"Did you mean {nearest}?" if nearest else "README.md has the table of all variables.",
            id="claudeops.W001",
        )
        for name, nearest in unknown(os.environ)
    ]
