"""`/memories/surfacing`: the memories with a window of time, told now or within the next days, the next first."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from memories.injection.windows import DAYS, upcoming, usable
from memories.models.memory import ANY_AGENT, ANY_PROJECT

MOST = 200


@require_safe
@never_cache
@permission_required("memories.view_memory", raise_exception=True)
def surfacing(request: HttpRequest) -> HttpResponse:
    found = upcoming(usable(ANY_PROJECT, ANY_AGENT).select_related("project"), timezone.now(), days=DAYS)
    context = {"rows": found[:MOST], "more": max(0, len(found) - MOST), "days": DAYS}
    return render(request, "memories/surfacing.html", context)
