"""Preferences and saved views in the database."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import ValidationError

from claudeops.lib.preferences import chosen
from claudeops.lib.preferences.chosen import choose, preference_of
from claudeops.lib.preferences.models import Preference, SavedView, Theme

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(django_user_model):
    return django_user_model.objects.create_user("night-shift", is_staff=True)


def test_a_preference_is_stored_once_it_is_chosen(person, django_user_model, django_assert_num_queries):
    assert preference_of(AnonymousUser()).theme == Theme.SYSTEM
    assert (preference_of(person).theme, preference_of(person).time_zone) == (Theme.SYSTEM, "")
    assert not Preference.objects.exists()
    choose(person, theme="dark")
    choose(person, time_zone="Europe/Berlin")
    again = django_user_model.objects.select_related("preference").get(pk=person.pk)
    with django_assert_num_queries(0):
        assert (preference_of(again).theme, preference_of(again).time_zone) == ("dark", "Europe/Berlin")
    for wrong in ({"theme": "pink"}, {"time_zone": "Mars/Olympus"}):
        with pytest.raises(ValidationError):
            choose(person, **wrong)
    assert Preference.objects.values_list("theme", "time_zone").get() == ("dark", "Europe/Berlin")


def test_views_are_a_persons_own(person, django_user_model, monkeypatch):
    other = django_user_model.objects.create_user("day-shift", is_staff=True)
    view = chosen.save_view(person, "sessions", "  Failed   last night ", "?status=failed&agent=")
    assert (view.name, view.query) == ("Failed last night", "status=failed")
    chosen.save_view(person, "sessions", "Failed last night", "status=lost")  # the same name: the same view
    chosen.save_view(person, "memories", "Failed last night", "")
    chosen.save_view(other, "sessions", "Failed last night", "")
    assert [one.query for one in chosen.views_of(person, "sessions")] == ["status=lost"]
    assert chosen.remove_view(other, view.pk) is None
    assert chosen.remove_view(person, view.pk).name == "Failed last night"
    assert chosen.views_of(person, "sessions") == []
    for page, name, query in (
        ("sessions", "", "a=b"),
        ("sessions", "x" * 61, "a=b"),
        ("sessions", "a\u202eb", "a=b"),
        ("sessions", "Away", "https://evil.example/?a=b"),
        ("https://evil.example", "Away", "a=b"),
    ):
        with pytest.raises(ValidationError):
            chosen.save_view(person, page, name, query)
    monkeypatch.setattr(chosen, "MOST", 1)
    chosen.save_view(person, "events", "One", "")
    with pytest.raises(ValidationError, match="Remove one first"):
        chosen.save_view(person, "events", "Two", "")
    assert SavedView.objects.count() == 3
