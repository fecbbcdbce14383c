"""Tokens: what opens the API, what is kept of a secret, when its use is written down, what a revoked one opens."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from django.utils import timezone

from memories.access import access_of, add_token, note_use, revoke_token
from memories.errors import AccessDenied, InvalidToken, TokenNotFound
from memories.models import ApiToken
from tests.support.api_callers import Caller, bearer, problem
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db


def test_of_a_secret_only_its_hash_and_its_beginning_are_kept():
    token, secret = add_token("n8n", ["read"], by="operator")
    row = ApiToken.objects.filter(pk=token.pk).values().get()
    assert row["secret_hash"] == hashlib.sha256(secret.encode()).hexdigest()
    assert row["prefix"] == secret[:12]
    assert secret not in str(row)
    assert len(secret) > 45
    assert (row["created_by"], row["last_used_at"], row["revoked_at"]) == ("operator", None, None)


def test_two_tokens_have_different_secrets_and_a_name_is_used_once():
    _, first = add_token("one", ["read"], by="x")
    _, second = add_token("two", ["read"], by="x")
    assert first != second
    with pytest.raises(InvalidToken, match="There is a token 'one' already"):
        add_token("one", ["read"], by="x")


@pytest.mark.parametrize(("name", "scopes"), [("", ["read"]), ("x" * 65, ["read"]), ("a", []), ("a", ["root"])])
def test_a_token_that_cannot_be_is_refused(name, scopes):
    with pytest.raises(InvalidToken):
        add_token(name, scopes, by="x")
    assert not ApiToken.objects.exists()


def test_each_scope_stands_alone_and_admin_holds_all():
    _, secret = add_token("writer", ["write"], by="x")
    access = access_of(secret)
    assert access is not None
    access.require("write")
    with pytest.raises(AccessDenied, match="This needs the scope read; token writer has write"):
        access.require("read")
    _, secret = add_token("boss", ["admin"], by="x")
    boss = access_of(secret)
    assert boss is not None
    assert all(boss.may(scope) for scope in ("read", "write", "run", "admin"))


def test_an_expired_token_opens_nothing_and_one_that_expires_later_does():
    later = timezone.now() + timedelta(days=1)
    token, secret = add_token("n8n", ["read"], by="x", expires_at=later)
    caller = Caller(secret)
    assert caller.get("/api/memories").status_code == 200
    assert access_of(secret, at=later) is None
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())
    for path in ("/api/memories", "/api/openapi.json"):
        assert problem(caller.get(path))[0] == 401
    with pytest.raises(InvalidToken, match="in the past"):
        add_token("late", ["read"], by="x", expires_at=timezone.now())


def test_a_revoked_token_opens_nothing_and_revoking_again_changes_nothing():
    caller = bearer("read")
    assert caller.get("/api/memories").status_code == 200
    first = revoke_token("caller", by="operator")
    again = revoke_token("caller", by="somebody else")
    assert (again.revoked_at, again.revoked_by) == (first.revoked_at, "operator")
    assert problem(caller.get("/api/memories")) == (401, "unknown_token")
    with pytest.raises(TokenNotFound, match="There is no token 'nobody'"):
        revoke_token("nobody", by="x")


def test_a_project_takes_its_tokens_with_it():
    project = ProjectFactory()
    caller = bearer("read", project=project)
    project.delete()
    assert problem(caller.get("/api/memories")) == (401, "unknown_token")


@pytest.mark.parametrize("secret", ["", "cops_wrong", "x" * 5000, "\u00e4\u00f6"])
def test_a_wrong_secret_opens_nothing(secret):
    bearer("read")
    response = Caller(secret).get("/api/memories")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    problem(response)


def test_the_last_use_is_written_after_the_answer_and_at_most_once_a_minute(django_assert_num_queries):
    caller = bearer("read")
    caller.get("/api/memories")
    used = ApiToken.objects.get().last_used_at
    assert used is not None
    caller.get("/api/memories")
    assert ApiToken.objects.get().last_used_at == used
    access = access_of(caller.secret)
    assert access is not None
    with django_assert_num_queries(0):
        assert not note_use(access, at=used + timedelta(seconds=59))
    assert note_use(access, at=used + timedelta(minutes=1))
    assert not note_use(access, at=used + timedelta(minutes=1, seconds=1)), "another process wrote it just before"


def test_a_use_that_its_scope_refuses_is_a_use():
    caller = bearer("run")
    assert problem(caller.get("/api/memories")) == (403, "forbidden")
    assert ApiToken.objects.get().last_used_at is not None
    assert ApiToken.objects.get().last_used_at <= timezone.now()


def test_no_secret_comes_into_the_log(caplog):
    caplog.set_level("DEBUG")
    caller = bearer("read")
    caller.get("/api/memories")
    caller.get("/api/nowhere")
    assert caller.secret not in caplog.text
