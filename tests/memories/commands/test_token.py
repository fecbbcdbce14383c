"""`manage.py token`."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from memories.access import access_of
from memories.models import ApiToken
from tests.support import commands
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db


run = partial(commands.run, "token")


def test_add_prints_the_secret_once_and_it_opens_what_was_asked_for():
    ProjectFactory(slug="homelab")
    code, out, _ = run("add", "n8n", "--scope", "read", "--scope", "run", "--project", "homelab", "--by", "me")
    secret = out.split()[-1]
    access = access_of(secret)
    assert code == 0
    assert (access.actor, access.scopes, access.max_tier) == ("token n8n", {"read", "run"}, 1)
    assert ApiToken.objects.get().project.slug == "homelab"
    for arguments in (["list"], ["list", "--json"]):
        code, out, _ = run(*arguments)
        assert code == 0
        assert secret not in out
        assert secret[:12] in out


def test_a_token_has_the_highest_tier_that_was_given():
    code, out, _ = run("add", "fixer", "--scope", "run", "--max-tier", "3", "--json")
    document = json.loads(out)["result"]
    assert (code, document["max_tier"], access_of(document["secret"]).max_tier) == (0, 3, 3)
    assert run("add", "other", "--max-tier", "4")[0] == 2


def test_a_token_expires_after_the_days_that_were_given():
    assert run("add", "short", "--expires", "30")[0] == 0
    token = ApiToken.objects.get()
    assert token.expires_at - token.created_at > timedelta(days=29, hours=23)
    assert "valid until" in run("list")[1]
    ApiToken.objects.update(expires_at=timezone.now())
    assert "expired" in run("list")[1]
    for days in ("0", "-3", "3651"):
        assert run("add", "other", "--expires", days)[0] == 1
    assert ApiToken.objects.count() == 1


def test_without_a_scope_a_token_reads():
    code, out, _ = run("add", "reader", "--json")
    document = json.loads(out)
    assert (code, document["command"], document["result"]["scopes"]) == (0, "token add", ["read"])
    assert access_of(document["result"]["secret"]).may("read")


def test_revoke_ends_it_and_the_list_says_by_whom():
    _, out, _ = run("add", "n8n")
    secret = out.split()[-1]
    code, out, _ = run("revoke", "n8n", "--by", "me")
    assert (code, out) == (0, "Token n8n is revoked.\n")
    assert access_of(secret) is None
    assert "by me" in run("list")[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "x", "--scope", "root"], "scope 'root' is unknown; allowed are read, review, write, run, hook, admin"),
        (["add", "x", "--project", "nowhere"], "There is no project 'nowhere'"),
        (["add", " "], "allowed is 1 to 64 characters"),
        (["revoke", "nobody"], "There is no token 'nobody'"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_made(arguments, said):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert said in err
    assert not ApiToken.objects.exists()


def test_without_any_token_the_list_says_so():
    assert run("list")[1] == "No token yet.\n"
