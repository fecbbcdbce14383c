"""Describe the machine that figures were measured on: time, cores, load, versions. No path and no host name."""

from __future__ import annotations

import os
import platform
import sqlite3
from pathlib import Path
from typing import Any

import django
import numpy as np
from django.db import connection
from django.utils import timezone


def describe(*, of_database: bool = True) -> dict[str, Any]:
    """Describe the machine now; `at` is UTC to the minute."""
    return {
        "at": timezone.now().strftime("%Y-%m-%d %H:%M UTC"),
        "database": database() if of_database else None,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": processor(),
        "load": load(),
        "python": platform.python_version(),
        "django": django.get_version(),
        "numpy": np.__version__,
    }


def load() -> float:
    """Processes that ran or waited for a core, on average over the last minute."""
    return round(os.getloadavg()[0], 1)


def database() -> str:
    if connection.vendor != "postgresql":
        return f"SQLite {sqlite3.sqlite_version}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        extension = cursor.fetchone()
        cursor.execute("SHOW server_version")
        version = cursor.fetchone()[0].split()[0]
    return f"PostgreSQL {version}" + (f" with pgvector {extension[0]}" if extension else "")


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
