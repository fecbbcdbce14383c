"""A database of its own for a bench, of the same engine, gone afterwards: the operator's rows are never touched."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from memories.recall import keyword, meaning, vectors


@contextmanager
def scratch() -> Iterator[Path]:
    """Within it `connection` is an empty, migrated database; yields its folder, which is the data folder so long."""
    kept_name, kept_folder = connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR
    with tempfile.TemporaryDirectory(prefix="claudeops-bench-") as folder:
        made = "" if connection.vendor == "sqlite" else f"claudeops_bench_{uuid.uuid4().hex[:12]}"
        if made:
            _server(f'CREATE DATABASE "{made}"')
        connection.close()
        connection.settings_dict["NAME"] = made or str(Path(folder) / "bench.sqlite3")
        settings.CLAUDEOPS_DATA_DIR = Path(folder)
        _forget()
        try:
            call_command("migrate", verbosity=0, interactive=False)
            yield Path(folder)
        finally:
            connection.close()
            connection.settings_dict["NAME"], settings.CLAUDEOPS_DATA_DIR = kept_name, kept_folder
            _forget()
            if made:
                _server(f'DROP DATABASE "{made}" WITH (FORCE)')


def _server(statement: str) -> None:
    connection.close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(statement)


def _forget() -> None:
    keyword.forget()
    vectors.forget()
    meaning.forget()
