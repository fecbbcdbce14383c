"""Liveness and readiness, for a load balancer or a supervisor."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse


def unapplied_migrations() -> int:
    """Count unapplied migrations. Raises DatabaseError when the database does not answer."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"ok": True})


@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    try:
        pending = unapplied_migrations()
    except DatabaseError:
        return JsonResponse({"ok": False, "reason": "the database does not answer"}, status=503)
    if pending:
        return JsonResponse({"ok": False, "reason": f"{pending} migrations are not applied"}, status=503)
    return JsonResponse({"ok": True})
