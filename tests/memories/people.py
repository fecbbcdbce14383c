"""Accounts that open the memories' pages in tests, and requests as htmx sends them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client

from claudeops.roles import set_up_roles

HTMX = {"HX-Request": "true"}
FORM = "application/x-www-form-urlencoded"


def person(role: str, name: str = "") -> Any:
    """A signed-in member of staff with one role."""
    set_up_roles()
    user = get_user_model().objects.create_user(name or f"one-{role}", password="a long password", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return user


def signed_in(role: str, name: str = "") -> Client:
    client = Client()
    client.force_login(person(role, name))
    return client


def put(client: Client, address: str, fields: dict[str, Any], **headers: str) -> Any:
    return client.put(address, urlencode(fields, doseq=True), content_type=FORM, headers=headers or HTMX)


def delete(client: Client, address: str, fields: dict[str, Any] | None = None, **headers: str) -> Any:
    return client.delete(address, urlencode(fields or {}, doseq=True), content_type=FORM, headers=headers or HTMX)
