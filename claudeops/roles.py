"""Roles as Django groups: viewer sees, operator curates, runs and stops, admin does everything.

An account has a role by being in its group, and must be staff. The groups are reset after every migration (so by
`manage.py up`); for other permissions, make a group of another name.
"""

from __future__ import annotations

import logging
from typing import Any

from django.apps import AppConfig, apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission
from django.db import DEFAULT_DB_ALIAS, connection

log = logging.getLogger(__name__)

VIEWER, OPERATOR, ADMIN = "viewer", "operator", "admin"
OWN = ("memories", "sessions_app")
OTHERS = ("auth", "django_q")

CURATES = frozenset({"memories.add_memory", "memories.change_memory", "memories.delete_memory"})
OPERATES = frozenset({"sessions_app.run_session", "sessions_app.stop_session", "sessions_app.clear_cooldown"})


def permissions_of(role: str, known: frozenset[str]) -> frozenset[str]:
    """Of the `known` permissions ("app.codename") those that `role` has. Raises KeyError for another role."""
    views = frozenset(name for name in known if name.partition(".")[0] in OWN and ".view_" in name)
    return {VIEWER: views, OPERATOR: views | CURATES | OPERATES, ADMIN: known}[role]


def set_up_roles(using: str = DEFAULT_DB_ALIAS) -> None:
    """Make the three groups, with exactly their permissions. A second time changes nothing."""
    rows = Permission.objects.using(using).filter(content_type__app_label__in=OWN + OTHERS)
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
    for label in OWN + OTHERS:
        create_permissions(apps.get_app_config(label), verbosity=0, using=using)
    set_up_roles(using)


RIGHTS = """
SELECT type.app_label, held.codename FROM auth_permission held
JOIN django_content_type type ON type.id = held.content_type_id
WHERE held.id IN (
    SELECT permission_id FROM auth_user_user_permissions WHERE user_id = %s
    UNION
    SELECT of_group.permission_id FROM auth_group_permissions of_group
    JOIN auth_user_groups member ON member.group_id = of_group.group_id WHERE member.user_id = %s
)
"""


class RightsBackend(ModelBackend):
    """Django's backend with one query for an account's permissions, where Django builds two.

    Every open page polls every few seconds: Django's two take 1.5 ms of CPU, this one 0.2. Nothing is kept between
    requests: a permission that is taken away is gone at once.
    """

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if not user_obj.is_active or user_obj.is_anonymous or user_obj.is_superuser or obj is not None:
            return super().get_all_permissions(user_obj, obj)
        if not hasattr(user_obj, "_perm_cache"):
            with connection.cursor() as cursor:
                cursor.execute(RIGHTS, [user_obj.pk, user_obj.pk])
                user_obj._perm_cache = {f"{label}.{codename}" for label, codename in cursor.fetchall()}
        return user_obj._perm_cache
