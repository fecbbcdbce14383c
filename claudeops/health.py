"""Two questions a load balancer or a supervisor asks: is the process alive, can it serve?"""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers."""
    return JsonResponse({"ok": True})


@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and every migration is applied, else 503 with the reason."""
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return JsonResponse({"ok": False, "reason": "the database does not answer"}, status=503)
    if pending:
        return JsonResponse({"ok": False, "reason": f"{len(pending)} migrations are not applied"}, status=503)
    return JsonResponse({"ok": True})
