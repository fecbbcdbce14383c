"""The admin of projects."""

from django.contrib import admin

from claudeops.lib.admin_lists import ListAdmin
from memories.models import Project


@admin.register(Project)
class ProjectAdmin(ListAdmin):
    list_display = ("slug", "name", "path", "memories_in_prompt", "memory_budget", "used_means", "created_at")
    list_filter = ("used_means",)
    search_fields = ("slug", "name", "description", "path")
    fields = (
        *("slug", "name", "description", "path"),
        *("default_expiry", "memories_in_prompt", "memory_budget", "used_means"),
    )
