"""The page of preferences, and what a choice changes on other pages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from claudeops.lib.preferences.models import Preference
from memories.access import add_token
from tests.support.factories import SessionFactory

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]


@pytest.fixture
def person(client, django_user_model):
    someone = django_user_model.objects.create_superuser("night-shift", password="a long password")
    client.force_login(someone)
    return someone


def test_a_person_chooses_theme_and_zone(client, person, django_user_model):
    assert "data-theme" not in client.get("/preferences").content.decode()
    client.cookies["zone"] = "Asia/Tokyo"
    assert " JST</time>" in client.get("/preferences").content.decode()  # the browser's, where none is chosen
    client.cookies["zone"] = "../../etc/passwd"
    assert " UTC</time>" in client.get("/preferences").content.decode()
    saved = client.post("/preferences", {"theme": "dark", "time_zone": "America/Sao_Paulo"}, follow=True)
    html = saved.content.decode()
    assert saved.redirect_chain == [("/preferences", 302)]
    assert '<html lang="en" data-theme="dark" data-zone="America/Sao_Paulo">' in html
    assert "Preferences saved." in html
    assert " UTC-03</time>" in html
    for url in ("/", "/admin/", "/no-such-page"):
        assert '<meta name="color-scheme" content="dark">' in client.get(url).content.decode(), url
    wrong = client.post("/preferences", {"theme": "pink", "time_zone": "Mars/Olympus"})
    assert wrong.status_code == 422
    assert Preference.objects.values_list("user", "theme", "time_zone").get() == (
        person.pk,
        "dark",
        "America/Sao_Paulo",
    )
    client.logout()
    assert '<meta name="color-scheme" content="light dark">' in client.get("/login").content.decode()
    assert timezone.get_current_timezone_name() == "UTC"  # nothing is left behind in this thread


def test_pages_tell_local_time_and_the_api_utc(client, person):
    _, secret = add_token("reader", ["read"], by="night-shift")
    at = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    session = SessionFactory(queued_at=at)
    Preference.objects.create(user=person, time_zone="Europe/Berlin")
    page = client.get(f"/sessions/{session.pk}").content.decode()
    shown = 'datetime="2026-03-29T01:00:00+00:00" title="2026-03-29 01:00:00 UTC">2026-03-29 03:00:00 CEST</time>'
    assert shown in page
    api = client.get(f"/api/sessions/{session.pk}", headers={"Authorization": f"Bearer {secret}"}).json()["queued_at"]
    assert datetime.fromisoformat(api) == at and api.endswith(("Z", "+00:00"))
