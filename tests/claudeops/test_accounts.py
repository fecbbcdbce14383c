"""Accounts and groups in the admin: nobody grants what they do not have, superusers are changed by superusers only."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission

from claudeops import roles

pytestmark = pytest.mark.django_db

PASSWORD = "a long password of somebody"
NEW = "another long password"
USER = "/admin/auth/user/"
GROUP = "/admin/auth/group/"


@pytest.fixture
def people(django_user_model):
    """Create a superuser, and a member of each role."""
    boss = django_user_model.objects.create_superuser("boss", password=PASSWORD)
    found = {"boss": boss}
    for role in (roles.VIEWER, roles.OPERATOR, roles.ADMIN):
        found[role] = django_user_model.objects.create_user(role, password=PASSWORD, is_staff=True)
        found[role].groups.add(Group.objects.get(name=role))
    return found


@pytest.fixture
def admin_role(client, people):
    client.force_login(people[roles.ADMIN])
    return client


def form(person, **fields):
    """Return what the account's form sends, with changes."""
    return {
        "username": person.username,
        "is_active": "on",
        "is_staff": "on",
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
        "groups": [group.pk for group in person.groups.all()],
        "user_permissions": [],
    } | fields


def rights(person):
    return type(person).objects.get(pk=person.pk).get_all_permissions()


def test_nobody_becomes_superuser_by_the_role_admin(admin_role, people, django_user_model):
    for person in (people[roles.ADMIN], people[roles.VIEWER], people["boss"]):
        admin_role.post(f"{USER}{person.pk}/change/", form(person, is_superuser="on"))
    made = {"username": "new", "usable_password": "true", "password1": NEW, "password2": NEW, "is_superuser": "on"}
    admin_role.post(f"{USER}add/", made)
    assert list(django_user_model.objects.filter(is_superuser=True).values_list("username", flat=True)) == ["boss"]
    assert 'name="is_superuser"' not in admin_role.get(f"{USER}{people[roles.VIEWER].pk}/change/").content.decode()


def test_a_superuser_is_not_changed_deleted_or_given_a_password(admin_role, people, django_user_model):
    boss = people["boss"]
    before = django_user_model.objects.filter(pk=boss.pk).values().get()
    asked = [
        (f"{USER}{boss.pk}/change/", form(boss, username="demoted")),
        (f"{USER}{boss.pk}/password/", {"usable_password": "true", "password1": NEW, "password2": NEW}),
        (f"{USER}{boss.pk}/password/", {"usable_password": "false"}),
        (f"{USER}{boss.pk}/delete/", {"post": "yes"}),
        (USER, {"action": "delete_selected", "_selected_action": [boss.pk], "post": "yes"}),
    ]
    for url, fields in asked:
        assert admin_role.post(url, fields).status_code == 403, url
    assert django_user_model.objects.filter(pk=boss.pk).values().get() == before


def test_the_groups_and_rights_on_offer_are_the_persons_own(admin_role, people):
    viewer = people[roles.VIEWER]
    schedules = Permission.objects.get(codename="add_schedule")
    above = Group.objects.create(name="schedulers")
    above.permissions.add(schedules)
    url = f"{USER}{viewer.pk}/change/"
    for fields in ({"user_permissions": [schedules.pk]}, {"groups": [above.pk]}):
        response = admin_role.post(url, form(viewer, **fields))
        assert response.status_code == 200
        assert "is not one of the available choices" in response.content.decode()
    assert "django_q.add_schedule" not in rights(viewer)
    operator = Group.objects.get(name=roles.OPERATOR)
    assert admin_role.post(url, form(viewer, groups=[operator.pk])).status_code == 302
    assert "memories.change_memory" in rights(viewer)


def test_whoever_has_a_right_more_is_not_taken_over(admin_role, people):
    viewer = people[roles.VIEWER]
    viewer.user_permissions.add(Permission.objects.get(codename="add_schedule"))
    for active in (True, False):  # who is inactive now can be made active later
        type(viewer).objects.filter(pk=viewer.pk).update(is_active=active)
        asked = {"usable_password": "true", "password1": NEW, "password2": NEW}
        assert admin_role.post(f"{USER}{viewer.pk}/password/", asked).status_code == 403
        assert admin_role.post(f"{USER}{viewer.pk}/change/", form(viewer)).status_code == 403
        assert admin_role.post(f"{USER}{viewer.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_group_gets_no_right_that_the_person_does_not_have(admin_role):
    schedules = Permission.objects.get(codename="add_schedule")
    own = Permission.objects.get(codename="view_memory")
    refused = admin_role.post(f"{GROUP}add/", {"name": "night shift", "permissions": [own.pk, schedules.pk]})
    assert "is not one of the available choices" in refused.content.decode()
    assert admin_role.post(f"{GROUP}add/", {"name": "night shift", "permissions": [own.pk]}).status_code == 302
    group = Group.objects.get(name="night shift")
    group.permissions.add(schedules)
    assert admin_role.post(f"{GROUP}{group.pk}/change/", {"name": "x", "permissions": [own.pk]}).status_code == 403
    assert admin_role.post(f"{GROUP}{group.pk}/delete/", {"post": "yes"}).status_code == 403


def test_the_role_admin_queues_no_function_of_its_choice(admin_role):
    schedule = {"func": "django.core.management.call_command", "args": "'createsuperuser'", "schedule_type": "O"}
    assert admin_role.post("/admin/django_q/schedule/add/", schedule).status_code == 403


def test_a_right_alone_gives_no_other(client, django_user_model, people):
    """Who may change accounts but has no other right changes only those who have no more."""
    clerk = django_user_model.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__in=("change_user", "view_user")))
    client.force_login(clerk)
    viewer = people[roles.VIEWER]
    assert client.post(f"{USER}{viewer.pk}/change/", form(viewer)).status_code == 403
    asked = form(clerk, groups=[Group.objects.get(name=roles.VIEWER).pk])
    assert "is not one of the available choices" in client.post(f"{USER}{clerk.pk}/change/", asked).content.decode()


def test_a_superuser_changes_everybody(client, people):
    client.force_login(people["boss"])
    viewer = people[roles.VIEWER]
    assert client.post(f"{USER}{viewer.pk}/change/", form(viewer, is_superuser="on")).status_code == 302
    assert type(viewer).objects.get(pk=viewer.pk).is_superuser
    asked = {"usable_password": "true", "password1": NEW, "password2": NEW}
    assert client.post(f"{USER}{viewer.pk}/password/", asked).status_code == 302
