"""Who may do what, as Django groups: viewer sees, operator curates, runs and stops, admin does everything.

An account has a role by being in its group; it must be staff to come in at all. The groups are put right after every
migration (so by `manage.py up`): whoever needs other rights makes a group of another name. Knows no page.
"""

from __future__ import annotations

import logging
from typing import Any

from django.apps import AppConfig, apps
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission
from django.db import DEFAULT_DB_ALIAS

log = logging.getLogger(__name__)

VIEWER, OPERATOR, ADMIN = "viewer", "operator", "admin"
HOUSE = ("memories", "sessions_app")  # what claudeops itself keeps
BEHIND = ("auth", "django_q")  # accounts, and the task queue's own tables

CURATES = frozenset({"memories.add_memory", "memories.change_memory", "memories.delete_memory"})
OPERATES = frozenset({"sessions_app.run_session", "sessions_app.stop_session", "sessions_app.clear_cooldown"})


def permissions_of(role: str, known: frozenset[str]) -> frozenset[str]:
    """Of the `known` permissions ("app.codename") those that `role` has. Raises KeyError for another role."""
    views = frozenset(name for name in known if name.partition(".")[0] in HOUSE and ".view_" in name)
    return {VIEWER: views, OPERATOR: views | CURATES | OPERATES, ADMIN: known}[role]


def set_up_roles(using: str = DEFAULT_DB_ALIAS) -> None:
    """Make the three groups, with exactly their permissions. A second time changes nothing."""
    rows = Permission.objects.using(using).filter(content_type__app_label__in=HOUSE + BEHIND)
    ids = {
        f"{label}.{codename}": pk
        for pk, label, codename in rows.values_list("pk", "content_type__app_label", "codename")
    }
    known = frozenset(ids)
    for role in (VIEWER, OPERATOR, ADMIN):
        group, _ = Group.objects.using(using).get_or_create(name=role)
        wanted = {ids[name] for name in permissions_of(role, known)}
        had = set(group.permissions.values_list("pk", flat=True))
        if taken := had - wanted:
            log.warning("%d permissions were taken from the group %s: they are not the role's.", len(taken), role)
            group.permissions.remove(*taken)
        if missing := wanted - had:
            group.permissions.add(*missing)


def after_migrating(sender: AppConfig, using: str, verbosity: int = 1, **kwargs: Any) -> None:
    """`post_migrate` of the last app with a role's permissions: all tables are there by then, and all rights."""
    for label in HOUSE + BEHIND:
        create_permissions(apps.get_app_config(label), verbosity=0, using=using)
    set_up_roles(using)
