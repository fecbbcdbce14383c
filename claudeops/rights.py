"""What an account may do, in one question. Django asks twice, for the account's own rights and for its groups'; and
every open page asks every few seconds. Nothing is remembered from one request to the next: a right that is taken
away is gone at once. Knows no page.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.db import connection

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
    """Django's own, by name and password; only the rights are read in another way, to the same result."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if not user_obj.is_active or user_obj.is_anonymous or user_obj.is_superuser or obj is not None:
            return super().get_all_permissions(user_obj, obj)
        if not hasattr(user_obj, "_perm_cache"):
            with connection.cursor() as cursor:
                cursor.execute(RIGHTS, [user_obj.pk, user_obj.pk])
                user_obj._perm_cache = {f"{label}.{codename}" for label, codename in cursor.fetchall()}
        return user_obj._perm_cache
