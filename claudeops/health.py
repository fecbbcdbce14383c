"""Liveness and readiness, for a load balancer or a supervisor."""

from __future__ import annotations

import time
from pathlib import Path

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse

from claudeops.lib import database_version, outage, sqlite_damage
from claudeops.lib.sqlite_damage import DAMAGED, OK, Checked
from memories.llm import status as models

CHECK_SECONDS = 0.25
"""Time for SQLite's quick check in /readyz: enough for some 80 MB. `manage.py doctor` takes longer."""
CHECKED_FOR = 60.0
"""Seconds for which a process answers with the result of its last check of the same file."""

_checked: dict[tuple[Path, int], tuple[float, Checked]] = {}


def integrity() -> Checked | None:
    """Return the result of SQLite's quick check, at most CHECKED_FOR old; None when the database is no file."""
    path = sqlite_damage.file()
    if path is None or not path.exists():
        return None
    key, now = (path, path.stat().st_ino), time.monotonic()  # a restored database is another file
    at, check = _checked.get(key, (0.0, None))
    if check is None or now - at >= CHECKED_FOR:
        check = sqlite_damage.quick_check(path, CHECK_SECONDS)
        _checked.clear()
        _checked[key] = (now, check)
    return check


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"ok": True})


@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    if full := outage.full_disk():
        return JsonResponse({"ok": False, "reason": full}, status=503)
    checked = integrity()
    if checked and checked.state == DAMAGED:
        return JsonResponse({"ok": False, "reason": sqlite_damage.sentence(checked.said)}, status=503)
    try:
        difference = database_version.difference()
        troubled = [] if difference else models.troubles()
    except DatabaseError as error:
        cause = outage.behind(error)
        reason = cause.message if cause else "The database does not answer."
        return JsonResponse({"ok": False, "reason": reason}, status=503)
    if difference:
        return JsonResponse({"ok": False, "reason": " ".join(difference)}, status=503)
    notes = [f"quick check of the database: {checked.said}"] if checked and checked.state != OK else []
    notes += [f"model of the {state.chosen.role.name}: {state.trouble}" for state in troubled]
    return JsonResponse({"ok": True, "note": "; ".join(notes)} if notes else {"ok": True})
