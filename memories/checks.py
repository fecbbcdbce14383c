"""System checks of the memory store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.db import connection

FTS5_MISSING = checks.Warning(
    "This Python's SQLite has no FTS5: keyword search in memories will not work.",
    hint=(
        "Use a Python built with it (python.org, Debian, Homebrew, uv and pyenv's defaults all are), or PostgreSQL "
        "through DATABASE_URL."
    ),
    id="memories.W001",
)


@checks.register("memories")
def check_full_text_search(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    if settings.DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3":
        return []
    return [] if has_fts5() else [FTS5_MISSING]


def has_fts5(connect: Callable[[str], sqlite3.Connection] = sqlite3.connect) -> bool:
    database = connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.OperationalError:
        return False
    finally:
        database.close()
    return True


@checks.register("memories", checks.Tags.database)
def check_recall_index(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """The full-text index has its triggers. Runs with `check --database default` and `migrate`."""
    if "default" not in (databases or ()) or "memory_terms" not in connection.introspection.table_names():
        return []
    from memories.recall import keyword_index

    lost = keyword_index.missing()
    if not lost:
        return []
    return [
        checks.Warning(
            f"The full-text index of memories is not updated: {', '.join(lost)} is missing.",
            hint="Run `manage.py migrate`: it creates what is missing.",
            id="memories.W003",
        )
    ]
