"""The admin of purges: what was forgotten, and the receipts; read-only."""

from __future__ import annotations

from django.contrib import admin

from claudeops.lib.admin_lists import ReadOnlyAdmin, age_filter
from sessions_app.models import Purge


@admin.register(Purge)
class PurgeAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "state", "by", "created_at", "done_at", "problem")
    list_filter = ("state", age_filter("created_at", "when"))
    list_defer = ("work",)
    exclude = ("work",)
    sortable_by = ("created_at",)
    page_permission = "sessions_app.purge_memory"
