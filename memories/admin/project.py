"""The admin of projects."""

from typing import ClassVar

from django.contrib import admin
from django.urls import reverse

from claudeops.lib.admin_lists import ListAdmin
from memories.lifecycle.projects import OF_FILES
from memories.models import Project


@admin.register(Project)
class ProjectAdmin(ListAdmin):
    page_permission: ClassVar[str] = "memories.view_memory"
    list_display = ("slug", "name", "path", "memories_in_prompt", "memory_budget", "used_means", "created_at")
    list_filter = ("used_means", "observed")
    search_fields = ("slug", "name", "description", "path")
    fields = (
        *("slug", "name", "description", "path", "memory_path"),
        *("default_expiry", "memories_in_prompt", "memory_budget", "used_means", "observed"),
        *OF_FILES,
    )

    def view_on_site(self, project: Project) -> str:
        return reverse("project", args=[project.slug])
