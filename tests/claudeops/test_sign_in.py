"""The limit on sign-ins: by user and address, before a password is hashed, logged, shown and lifted."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.conf import settings as project_settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import RequestFactory

from claudeops import roles, sign_in

pytestmark = pytest.mark.django_db

PASSWORD = "a long password"
LIMIT = project_settings.AXES_FAILURE_LIMIT


def attempt(client, password="a guess", *, user="operator", address="192.0.2.7", path="/login", **headers):
    form = {"username": user, "password": password}
    return client.post(path, form, REMOTE_ADDR=address, headers=headers or None)


@pytest.fixture
def hashed(monkeypatch, settings):
    """Count how often a password is hashed."""
    counted = []

    class Counting(PBKDF2PasswordHasher):
        iterations = 1

        def encode(self, *args, **kwargs):
            counted.append(1)
            return super().encode(*args, **kwargs)

    monkeypatch.setattr("tests.claudeops.test_sign_in.Counting", Counting, raising=False)
    settings.PASSWORD_HASHERS = ["tests.claudeops.test_sign_in.Counting"]
    return counted


def test_sixty_wrong_passwords_and_then_the_right_one(client, operator, hashed, caplog):
    operator.set_password(PASSWORD)
    operator.save()
    hashed.clear()
    with caplog.at_level(logging.WARNING):
        answers = [attempt(client, f"guess {number}").status_code for number in range(60)]
    assert answers == [200] * (LIMIT - 1) + [429] * (60 - LIMIT + 1)
    assert len(hashed) == LIMIT
    refused = attempt(client, PASSWORD)
    assert (refused.status_code, refused.wsgi_request.user.is_authenticated) == (429, False)
    assert "Too many failed sign-ins" in refused.content.decode()
    assert len(hashed) == LIMIT
    assert "Locking out user 'operator' from 192.0.2.7" in caplog.text
    assert "guess" not in caplog.text


def test_the_admins_own_form_asks_at_the_same_door(client, operator):
    for _ in range(LIMIT):
        attempt(client)
    assert attempt(client, PASSWORD, path="/admin/login/").status_code == 302  # to the one sign-in page
    assert "_auth_user_id" not in client.session


def test_a_refused_try_writes_nothing(client, operator, django_assert_max_num_queries):
    for _ in range(LIMIT):
        attempt(client)
    before = list(AccessAttempt.objects.values())
    with django_assert_max_num_queries(6) as seen:
        assert attempt(client, PASSWORD).status_code == 429
    assert all(query["sql"].startswith("SELECT") for query in seen.captured_queries), seen.captured_queries
    assert list(AccessAttempt.objects.values()) == before


def test_the_owner_signs_in_from_elsewhere_and_others_from_the_same_address(client, operator, django_user_model):
    django_user_model.objects.create_user("second", password=PASSWORD, is_staff=True)
    for _ in range(LIMIT):
        attempt(client)
    assert attempt(client, PASSWORD, address="192.0.2.8").status_code == 302
    client.logout()
    assert attempt(client, PASSWORD, user="second").status_code == 302


def test_an_address_that_tries_many_names_is_refused(client, operator, monkeypatch):
    monkeypatch.setattr(sign_in, "MOST_OF_ADDRESS", 8)
    answers = [attempt(client, user=f"name-{number}").status_code for number in range(9)]
    assert answers == [200] * 7 + [429] * 2
    assert attempt(client, PASSWORD).status_code == 429
    assert attempt(client, PASSWORD, address="192.0.2.8").status_code == 302


def test_the_right_password_forgets_the_failures(client, operator):
    for _ in range(3):
        for _ in range(LIMIT - 1):
            attempt(client)
        assert attempt(client, PASSWORD).status_code == 302
        client.logout()
    assert not AccessAttempt.objects.exists()


def test_the_limit_ends_by_itself_and_a_command_lifts_it(client, operator, capsys):
    for lift in (
        lambda: AccessAttempt.objects.update(
            attempt_time=AccessAttempt.objects.get().attempt_time - project_settings.AXES_COOLOFF_TIME - timedelta(1)
        ),
        lambda: call_command("axes_reset"),
        lambda: call_command("axes_reset_username", "operator"),
        lambda: call_command("axes_reset_ip", "192.0.2.7"),
    ):
        for _ in range(LIMIT):
            attempt(client)
        assert attempt(client, PASSWORD).status_code == 429
        lift()
        assert attempt(client, PASSWORD).status_code == 302
        client.logout()


def test_operators_see_who_failed_and_an_admin_lifts_it(client, operator, django_user_model):
    for _ in range(LIMIT):
        attempt(client, user="mallory")
    row = AccessAttempt.objects.get()
    assert "a guess" not in str(AccessAttempt.objects.values().get())
    for role, lifts in ((roles.OPERATOR, False), (roles.ADMIN, True)):
        person = django_user_model.objects.create_user(f"a-{role}", is_staff=True)
        person.groups.add(Group.objects.get(name=role))
        client.force_login(person)
        shown = client.get("/admin/axes/accessattempt/")
        assert shown.status_code == 200
        assert "mallory" in shown.content.decode()
        assert "192.0.2.7" in shown.content.decode()
        response = client.post(f"/admin/axes/accessattempt/{row.pk}/delete/", {"post": "yes"})
        assert (response.status_code == 302) == lifts
    assert not AccessAttempt.objects.exists()


def test_a_name_cannot_forge_a_line_of_the_log(client, operator, caplog):
    with caplog.at_level(logging.WARNING):
        attempt(client, user="x\nWARNING axes: all is well")
    assert "\nWARNING axes: all is well" not in caplog.text
    assert "user 'x" in caplog.text


@pytest.mark.parametrize(
    ("proxies", "forwarded", "remote", "expected"),
    [
        (0, "203.0.113.9", "192.0.2.1", "192.0.2.1"),
        (1, "203.0.113.9", "192.0.2.1", "203.0.113.9"),
        (1, "1.2.3.4, 203.0.113.9", "192.0.2.1", "203.0.113.9"),
        (2, "1.2.3.4, 203.0.113.9, 198.51.100.2", "192.0.2.1", "203.0.113.9"),
        (2, "203.0.113.9", "192.0.2.1", "203.0.113.9"),
        (1, "", "192.0.2.1", None),
        (1, "nonsense", "192.0.2.1", None),
        (0, "", "", None),
        (0, "", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        (0, "", "::ffff:192.0.2.1", "192.0.2.1"),
    ],
)
def test_the_address_is_the_one_that_the_trusted_proxies_saw(settings, proxies, forwarded, remote, expected):
    settings.CLAUDEOPS_TRUSTED_PROXIES = proxies
    request = RequestFactory().post("/login", REMOTE_ADDR=remote, headers={"X-Forwarded-For": forwarded})
    assert sign_in.client_address(request) == expected


def test_without_trusted_proxies_a_header_does_not_get_around_the_limit(client, operator):
    answers = [attempt(client, **{"X-Forwarded-For": f"203.0.113.{number}"}).status_code for number in range(LIMIT)]
    assert answers[-1] == 429


def test_who_has_no_address_is_limited_too(client, operator):
    answers = [attempt(client, address="").status_code for _ in range(LIMIT)]
    assert answers[-1] == 429


def test_while_one_password_is_hashed_others_are_soon_refused_and_nothing_counts(client, operator, hashed, monkeypatch):
    monkeypatch.setattr(sign_in, "_places", threading.BoundedSemaphore(1))
    operator.set_password(PASSWORD)
    operator.save()
    hashed.clear()
    with sign_in.turn() as mine:
        assert mine
        busy = attempt(client, PASSWORD)
    assert (busy.status_code, busy["Retry-After"]) == (429, "5")
    assert "at once" in busy.content.decode()
    assert not hashed
    assert not AccessAttempt.objects.exists()
    assert attempt(client, PASSWORD).status_code == 302
