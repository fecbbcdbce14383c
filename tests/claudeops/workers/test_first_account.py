"""The first operator account."""

from __future__ import annotations

import stat

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.http import HttpRequest

from claudeops.workers.up import first_account

pytestmark = pytest.mark.django_db


def test_the_first_start_makes_an_operator_who_can_sign_in(tmp_path):
    made = first_account(tmp_path)
    account = authenticate(HttpRequest(), username=made.user, password=made.password)
    assert account is not None
    assert (account.username, account.is_staff, account.is_superuser) == ("operator", True, True)
    assert made.password in made.file.read_text()


def test_the_file_is_for_its_owner_alone(tmp_path):
    file = first_account(tmp_path).file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_the_next_start_says_the_same_password_and_makes_nobody(tmp_path):
    assert first_account(tmp_path) == first_account(tmp_path)
    assert get_user_model().objects.count() == 1


def test_two_houses_have_two_passwords(tmp_path):
    first = first_account(tmp_path).password
    get_user_model().objects.all().delete()
    assert first_account(tmp_path).password != first


def test_a_changed_password_is_kept_and_the_file_goes(tmp_path):
    file = first_account(tmp_path).file
    account = get_user_model().objects.get()
    account.set_password("a password of my own")
    account.save()
    again = first_account(tmp_path)
    assert again.password is None
    assert not file.exists()
    assert authenticate(HttpRequest(), username="operator", password="a password of my own")


def test_a_removed_file_is_not_written_again(tmp_path):
    first_account(tmp_path).file.unlink()
    again = first_account(tmp_path)
    assert again.password is None
    assert not again.file.exists()


def test_where_somebody_has_an_account_already_none_is_made(tmp_path, stranger):
    made = first_account(tmp_path)
    assert made.password is None
    assert list(get_user_model().objects.values_list("username", flat=True)) == [stranger.username]
    assert list(tmp_path.iterdir()) == []


def test_without_a_place_for_the_password_no_account_is_made(tmp_path):
    with pytest.raises(OSError, match="gone"):
        first_account(tmp_path / "gone")
    assert not get_user_model().objects.exists()
