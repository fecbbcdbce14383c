"""What an account may do is what Django says it may, asked in one question."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from claudeops.roles import ADMIN, OPERATOR, VIEWER, RightsBackend, set_up_roles
from tests.support.factories import MemoryFactory

pytestmark = pytest.mark.django_db


def account(*roles: str, **fields):
    set_up_roles()
    user = get_user_model().objects.create_user("one", password="a long password", **fields)
    user.groups.set(Group.objects.filter(name__in=roles))
    return get_user_model().objects.get(pk=user.pk)


def by_django(user) -> set[str]:
    return ModelBackend().get_all_permissions(get_user_model().objects.get(pk=user.pk))


@pytest.mark.parametrize("roles", [(), (VIEWER,), (OPERATOR,), (ADMIN,), (VIEWER, OPERATOR)], ids=str)
def test_the_rights_of_a_role_are_those_django_finds(roles):
    user = account(*roles, is_staff=True)
    assert user.get_all_permissions() == by_django(user)
    assert bool(user.get_all_permissions()) == bool(roles)


def test_a_right_of_ones_own_counts_beside_those_of_the_groups():
    user = account(VIEWER, is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="delete_memory"))
    assert user.get_all_permissions() == by_django(user)
    assert user.has_perm("memories.delete_memory")


@pytest.mark.parametrize("fields", [{"is_superuser": True}, {"is_active": False}], ids=str)
def test_who_may_all_and_who_may_nothing_are_left_to_django(fields):
    user = account(ADMIN, is_staff=True, **fields)
    assert user.get_all_permissions() == by_django(user)


def test_nobody_has_rights_to_one_thing_alone_and_a_stranger_none_at_all():
    user, backend = account(ADMIN, is_staff=True), RightsBackend()
    assert backend.get_all_permissions(user, MemoryFactory()) == set()
    assert backend.get_all_permissions(AnonymousUser()) == set()


def test_rights_are_asked_for_once_a_request_and_never_kept_for_the_next():
    user = account(OPERATOR, is_staff=True)
    with CaptureQueriesContext(connection) as asked:
        assert user.has_perm("memories.change_memory")
        assert user.has_perm("memories.delete_memory")
    assert len(asked) == 1
    user.groups.clear()
    assert not get_user_model().objects.get(pk=user.pk).has_perm("memories.change_memory")
