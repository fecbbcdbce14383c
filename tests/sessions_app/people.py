"""Accounts that open the dashboard's pages in tests, and requests as htmx sends them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from claudeops.roles import set_up_roles

HTMX = {"HX-Request": "true"}


def person(role: str) -> Any:
    """A signed-in member of staff with one role."""
    set_up_roles()
    user = get_user_model().objects.create_user(f"one-{role}", password="a long password", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return user
