"""Who may see a page: signed-in staff, from the first page on; and the two questions that need no sign-in."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

pytestmark = pytest.mark.django_db

PAGES = ["/", "/admin/", "/admin/memories/memory/", "/admin/sessions_app/session/"]


@pytest.fixture
def team_mate(db):
    """Create a staff account without the operator's rights."""
    return get_user_model().objects.create_user("team-mate", password="a long password", is_staff=True)


@pytest.mark.parametrize("page", PAGES)
class TestPages:
    def test_a_signed_out_browser_is_sent_to_sign_in_and_back(self, client, page):
        response = client.get(page)
        assert response.status_code == 302
        assert response.headers["Location"].endswith(f"?next={page}")
        assert "login" in response.headers["Location"]

    def test_a_fragment_is_refused_instead(self, client, page):
        response = client.get(page, headers={"HX-Request": "true"})
        assert response.status_code == 403
        assert response.content == b"Signed out. Reload the page to sign in."

    def test_a_stranger_is_refused(self, client, stranger, page):
        client.force_login(stranger)
        assert client.get(page).status_code == 403
        assert client.get(page, headers={"HX-Request": "true"}).status_code == 403

    def test_the_operator_sees_it(self, client, operator, page):
        client.force_login(operator)
        assert client.get(page).status_code == 200


def test_staff_sees_the_first_page_with_a_role_and_is_told_whom_to_ask_without_one(client, team_mate):
    client.force_login(team_mate)
    refused = client.get("/")
    assert refused.status_code == 403
    assert "Ask an admin for the role viewer" in refused.content.decode()
    team_mate.groups.add(Group.objects.get(name="viewer"))
    assert client.get("/").status_code == 200


def test_a_deactivated_account_is_signed_out(client, operator):
    client.force_login(operator)
    operator.is_active = False
    operator.save()
    assert client.get("/").status_code == 302


def test_the_sign_in_page_is_open_and_a_password_opens_the_house(client, operator):
    assert client.get("/login").status_code == 200
    response = client.post("/login", {"username": "operator", "password": "a long password"})
    assert (response.status_code, response.headers["Location"]) == (302, "/")
    assert client.get("/").status_code == 200


def test_a_wrong_password_opens_nothing(client, operator):
    response = client.post("/login", {"username": "operator", "password": "a guess"})
    assert response.status_code == 200
    assert client.get("/").status_code == 302


def test_somebody_who_is_not_staff_can_sign_out(client, stranger):
    client.force_login(stranger)
    assert client.post("/logout").status_code == 302
    assert "_auth_user_id" not in client.session


class TestHeaders:
    def test_every_answer_carries_a_strict_policy(self, client, operator):
        client.force_login(operator)
        for page in ("/", "/login", "/healthz"):
            policy = client.get(page, follow=True).headers["Content-Security-Policy"]
            assert "default-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy

    def test_nothing_may_frame_or_sniff_it(self, client):
        headers = client.get("/login").headers
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"


class TestHealth:
    def test_a_process_that_answers_is_alive_without_sign_in_or_database(self, client, django_assert_num_queries):
        with django_assert_num_queries(0):
            response = client.get("/healthz")
        assert (response.status_code, response.json()) == (200, {"ok": True})

    def test_a_migrated_database_is_ready(self, client):
        response = client.get("/readyz")
        assert (response.status_code, response.json()) == (200, {"ok": True})

    def test_a_migration_that_is_not_applied_is_said(self, client):
        MigrationRecorder.Migration.objects.filter(app="memories").order_by("-id")[:1].get().delete()
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json() == {"ok": False, "reason": "1 migration is not applied. Run: manage.py migrate"}

    def test_a_database_that_does_not_answer_is_said(self, client, monkeypatch):
        def broken(*args, **kwargs):
            raise OperationalError("gone")

        monkeypatch.setattr(connection, "cursor", broken)
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json() == {"ok": False, "reason": "The database does not answer."}

    def test_a_stranger_may_ask_too(self, client, stranger):
        client.force_login(stranger)
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 200
