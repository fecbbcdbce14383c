"""Roles as Django groups: viewer sees, operator curates, runs and stops, admin also manages agents and accounts.

Nobody grants a right that they do not have, and only superusers change superusers.

Accounts must be staff too. Every migration resets these groups: for other permissions, make a group of another name.
"""

from __future__ import annotations

import logging
from typing import Any

from django.apps import AppConfig, apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import AbstractUser, Group, Permission, User
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model, Q, QuerySet

log = logging.getLogger(__name__)

VIEWER, OPERATOR, ADMIN = "viewer", "operator", "admin"
OWN = ("memories", "sessions_app")
OTHERS = ("auth", "axes", "django_q", "preferences")

CURATES = frozenset(
    {
        *("memories.add_memory", "memories.change_memory", "memories.delete_memory"),
        *("memories.add_project", "memories.change_project"),
        *(
            "memories.change_proposal",
            "memories.change_memoryfile",
            "memories.add_journalentry",
            "memories.change_maintenancerun",
        ),
    }
)
OPERATES = frozenset(
    f"sessions_app.{name}" for name in ("run_session", "stop_session", "clear_cooldown", "acknowledge_event")
)
WATCHES = frozenset({"axes.view_accessattempt"})
SUPERUSERS_ONLY = frozenset({"django_q.add_schedule", "django_q.change_schedule", "django_q.change_ormq"})
"""A schedule calls any function with any arguments, also one that makes a superuser."""


def permissions_of(role: str, known: frozenset[str]) -> frozenset[str]:
    """Select those of the `known` permissions ("app.codename") that `role` has. Raises KeyError for another role."""
    views = frozenset(name for name in known if name.partition(".")[0] in OWN and ".view_" in name)
    return known & {VIEWER: views, OPERATOR: views | CURATES | OPERATES | WATCHES, ADMIN: known - SUPERUSERS_ONLY}[role]


def set_up_roles(using: str = DEFAULT_DB_ALIAS) -> None:
    """Create the three groups with exactly their permissions. Idempotent."""
    rows = Permission.objects.using(using).filter(content_type__app_label__in=OWN + OTHERS)
    ids = {
        f"{label}.{codename}": pk
        for pk, label, codename in rows.values_list("pk", "content_type__app_label", "codename")
    }
    names = frozenset(ids)
    for role in (VIEWER, OPERATOR, ADMIN):
        group, _ = Group.objects.using(using).get_or_create(name=role)
        wanted = {ids[name] for name in permissions_of(role, names)}
        had = set(group.permissions.values_list("pk", flat=True))
        if excess := had - wanted:
            log.warning("%d permissions were taken from the group %s: they are not the role's.", len(excess), role)
            group.permissions.remove(*excess)
        if missing := wanted - had:
            group.permissions.add(*missing)


def after_migrating(sender: AppConfig, using: str, verbosity: int = 1, **kwargs: Any) -> None:
    """Handle `post_migrate` of the last app whose permissions a role has: by then all tables exist."""
    for label in OWN + OTHERS:
        create_permissions(apps.get_app_config(label), verbosity=0, using=using)
    set_up_roles(using)


def may_manage(person: Any, target: Model) -> bool:
    """Whether `person` may change or delete an account or a group: it has no right that the person does not have."""
    if person.is_superuser:
        return True
    if isinstance(target, Group):
        return _ids(target.permissions.all()) <= _own(person)
    if not isinstance(target, AbstractUser):
        return True
    return not target.is_superuser and _own(target) <= _own(person)


def grantable(person: Any, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Filter groups or permissions to those that `person` may grant."""
    if person.is_superuser:
        return rows
    if rows.model is Group:
        return rows.exclude(permissions__in=Permission.objects.exclude(pk__in=_own(person)))
    return rows.filter(pk__in=_own(person))


def _own(person: Any) -> set[int]:
    """Return the ids of a person's permissions, also of one who is not active and may be again."""
    return _ids(Permission.objects.filter(Q(user=person.pk) | Q(group__user=person.pk)))


def _ids(permissions: QuerySet[Permission]) -> set[int]:
    return set(permissions.order_by().values_list("pk", flat=True))


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
    """Read an account's permissions with one query; Django uses two.

    Every open page polls every few seconds: Django's two take 1.5 ms of CPU, this one 0.2. Nothing is cached between
    requests, so a permission that is taken away is gone at once.
    """

    def get_user(self, user_id: Any) -> Any:
        """Load an account with its preference, which each page needs, in one query."""
        user = User._default_manager.select_related("preference").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if not user_obj.is_active or user_obj.is_anonymous or user_obj.is_superuser or obj is not None:
            return super().get_all_permissions(user_obj, obj)
        if not hasattr(user_obj, "_perm_cache"):
            with connection.cursor() as cursor:
                cursor.execute(RIGHTS, [user_obj.pk, user_obj.pk])
                user_obj._perm_cache = {f"{label}.{codename}" for label, codename in cursor.fetchall()}
        return user_obj._perm_cache
