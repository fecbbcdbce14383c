"""Tokens in the admin: the secret is shown once, in the answer; revoking; who may."""

from __future__ import annotations

import re

import pytest
from django.contrib.messages import get_messages

from memories.access import access_of, add_token
from memories.models import ApiToken
from tests.memories.people import signed_in
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db

TOKENS = "/admin/memories/apitoken/"


def test_an_admin_makes_a_token_and_sees_its_secret_this_once(caplog):
    caplog.set_level("DEBUG")
    client = signed_in("admin")
    project = ProjectFactory(slug="homelab")
    response = client.post(
        f"{TOKENS}add/", {"name": "n8n", "scopes": ["read", "write"], "project": project.pk, "max_tier": 2}
    )
    assert response.status_code == 200
    assert "no-store" in response.headers["Cache-Control"]
    (secret,) = re.findall(r"cops_[\w-]{43}", response.content.decode())
    token = ApiToken.objects.get()
    assert (token.name, token.scopes, token.project, token.max_tier, token.created_by) == (
        "n8n",
        ["read", "write"],
        project,
        2,
        "one-admin",
    )
    assert access_of(secret).token_id == token.pk
    for page in (TOKENS, f"{TOKENS}{token.pk}/change/", "/admin/"):
        html = client.get(page).content.decode()
        assert secret not in html
        assert not list(get_messages(response.wsgi_request))
    assert secret not in str(dict(client.session))
    assert secret not in caplog.text


@pytest.mark.parametrize(("day", "made"), [("2099-01-02", 1), ("2020-01-02", 0)])
def test_a_token_expires_on_the_day_that_was_given_and_not_in_the_past(day, made):
    form = {"name": "n8n", "scopes": ["read"], "max_tier": 1, "expires_at_0": day, "expires_at_1": "03:04:05"}
    signed_in("admin").post(f"{TOKENS}add/", form)
    assert ApiToken.objects.filter(expires_at__year=2099).count() == made
    assert ApiToken.objects.count() == made


def test_a_name_that_is_taken_and_a_token_without_a_scope_are_said_at_the_field():
    client = signed_in("admin")
    add_token("n8n", ["read"], by="x")
    html = client.post(f"{TOKENS}add/", {"name": "n8n"}).content.decode()
    assert "A token of this name exists already" in html
    assert "This field is required" in html
    assert ApiToken.objects.count() == 1


def test_an_admin_revokes_one_and_several():
    client = signed_in("admin")
    first, secret = add_token("one", ["read"], by="x")
    second, _ = add_token("two", ["read"], by="x")
    client.post(TOKENS, {"action": "revoke", "_selected_action": [first.pk], "index": "0"})
    assert access_of(secret) is None
    assert ApiToken.objects.get(pk=first.pk).revoked_by == "one-admin"
    client.post(TOKENS, {"action": "revoke", "_selected_action": [first.pk, second.pk], "index": "0"})
    assert not ApiToken.objects.filter(revoked_at=None).exists()


def test_a_token_that_is_there_cannot_be_changed_into_another():
    client = signed_in("admin")
    token, _ = add_token("one", ["read"], by="x")
    client.post(f"{TOKENS}{token.pk}/change/", {"name": "other", "scopes": ["admin"]})
    token.refresh_from_db()
    assert (token.name, token.scopes) == ("one", ["read"])


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_others_see_the_tokens_and_make_and_revoke_none(role):
    client = signed_in(role)
    token, _ = add_token("one", ["read"], by="x")
    assert client.get(TOKENS).status_code == 200
    assert client.post(f"{TOKENS}add/", {"name": "two", "scopes": ["admin"], "max_tier": 1}).status_code == 403
    client.post(TOKENS, {"action": "revoke", "_selected_action": [token.pk], "index": "0"})
    assert list(ApiToken.objects.values_list("name", "revoked_at")) == [("one", None)]
