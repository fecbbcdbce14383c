"""Add a project and change its settings: the verbs of the page, the admin's form, the API and the command."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from memories.errors import InvalidProject, ProjectNotFound
from memories.models import Project

OF_FILES = ("files_folder", "files_pattern", "files_limits", "files_sections", "takes_phrases")
"""The settings of the memory files of its agents."""
SETTINGS = (
    *("name", "description", "path", "memory_path", "default_expiry"),
    *("memories_in_prompt", "memory_budget", "used_means", "observed", "trusts_repository"),
    *("trusted_authors", "allowed_signers"),
    *OF_FILES,
)
"""The fields that can be given when a project is made, and changed later. Its slug stays."""


def find_project(slug: str) -> Project:
    """Return the project of this slug. Raises ProjectNotFound."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        slugs = ", ".join(Project.objects.values_list("slug", flat=True)[:20]) or "none yet"
        fix = f"Known projects: {slugs}. Add one with: manage.py project add {slug}"
        raise ProjectNotFound(f"There is no project {slug!r}.", fix)
    return project


def add_project(slug: str, **settings: Any) -> Project:
    """Make a project. `settings`: see SETTINGS. Raises InvalidProject with the fields that are wrong."""
    project = Project(slug=slug, **settings)
    with transaction.atomic():
        _check(project)
        project.save(force_insert=True)
    return project


def set_project(project: Project, **settings: Any) -> list[str]:
    """Change the given settings of `project` and return the names of those that differ now.

    Two changes at once keep each other's fields. Raises InvalidProject; then `project` is as it was.
    """
    with transaction.atomic():
        row = Project.objects.select_for_update().filter(pk=project.pk).first()
        if row is None:
            raise ProjectNotFound(f"There is no project {project.slug!r}.", "It was deleted meanwhile.")
        before = {name: getattr(row, name) for name in settings}
        for name, value in settings.items():
            setattr(row, name, value)
        _check(row)
        changed = [name for name, value in before.items() if getattr(row, name) != value]
        if changed:
            row.save(update_fields=changed)
    for name in settings:
        setattr(project, name, getattr(row, name))
    return changed


def _check(project: Project) -> None:
    try:
        project.full_clean()
    except ValidationError as error:
        raise InvalidProject(error.message_dict) from None
