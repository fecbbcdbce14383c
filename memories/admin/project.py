"""The admin of projects."""

from django.contrib import admin

from claudeops.lib.admin_lists import ListAdmin
from memories.models import Project


@admin.register(Project)
class ProjectAdmin(ListAdmin):
    list_display = ("slug", "name", "created_at")
    search_fields = ("slug", "name", "description")
    fields = ("slug", "name", "description", "default_expiry")
