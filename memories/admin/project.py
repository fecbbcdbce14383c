"""The admin of projects: what a memory can be limited to."""

from django.contrib import admin

from claudeops.lib.admin_lists import LeanAdmin
from memories.models import Project
from memories.templatetags.claudeops import ago


@admin.register(Project)
class ProjectAdmin(LeanAdmin):
    list_display = ("slug", "name", "created")
    search_fields = ("slug", "name")
    fields = ("slug", "name")

    @admin.display(description="created", ordering="created_at")
    def created(self, project: Project) -> str:
        return ago(project.created_at)
