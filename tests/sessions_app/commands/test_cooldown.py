"""`manage.py cooldown`."""

from __future__ import annotations

import json
from functools import partial

import pytest

from sessions_app.models import CooldownClearance
from sessions_app.runner.shell import remediations_in
from tests.support import commands
from tests.support.factories import CooldownActionFactory

pytestmark = pytest.mark.django_db


run = partial(commands.run, "cooldown")


@pytest.fixture
def exhausted():
    CooldownActionFactory.create_batch(2, service="jellyfin")


def test_an_allowed_restart_exits_with_0_and_the_reason():
    code, out, _ = run("check", "restart", "jellyfin")
    assert code == 0
    assert out.startswith("Allowed: 0 of 2 restarts")


def test_a_refused_restart_exits_with_1_and_the_reason(exhausted):
    code, out, _ = run("check", "restart", "jellyfin")
    assert code == 1
    assert out.startswith("Refused: 2 of 2 restarts of jellyfin")


def test_the_document_holds_the_same(exhausted):
    code, out, _ = run("check", "restart", "jellyfin", "--json")
    document = json.loads(out)
    assert code == 1
    assert document["ok"] is True
    assert document["command"] == "cooldown check"
    assert document["result"]["allowed"] is False


def test_a_wrong_action_is_an_error_that_names_what_is_allowed():
    code, _, err = run("check", "reboot", "jellyfin")
    assert code == 1
    assert "There is no action 'reboot'" in err
    assert "restart, redeployment" in err


def test_a_missing_service_is_an_error():
    code, _, err = run("check", "restart")
    assert code == 1
    assert "An action and a service are needed" in err


def test_the_hook_of_earlier_settings_refuses_and_says_where_it_has_moved():
    code, _, err = run("check", "--hook")
    assert code == 2
    assert "manage.py hook install --cooldowns" in err


def test_the_list_shows_what_is_used(exhausted):
    code, out, _ = run("list")
    assert code == 0
    assert "jellyfin" in out
    assert "2 of 2" in out


def test_the_list_says_when_nothing_is_used():
    assert run("list")[1].strip() == "No limit is in use."


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("docker restart jellyfin", [("restart", "jellyfin")]),
        ("sudo systemctl restart caddy.service wg-quick@wg0", [("restart", "caddy"), ("restart", "wg-quick-wg0")]),
        ("cd /srv && docker compose up -d --build jellyfin", [("redeployment", "jellyfin")]),
        ("docker compose restart db; docker ps", [("restart", "db")]),
        ("kubectl rollout restart deployment/web", [("restart", "web")]),
        ("docker ps -a | grep restart", []),
        ("echo 'docker restart x'", []),
        ("docker restart 'unclosed", [("restart", "unclosed")]),
        ("", []),
    ],
)
def test_restarts_and_redeployments_are_found_in_a_command(command, found):
    assert remediations_in(command) == found


def test_clearing_lets_it_be_done_again_and_keeps_who_and_why(exhausted):
    code, out, _ = run("clear", "jellyfin", "restart", "--reason", "The disk is replaced.", "--by", "anna")
    assert code == 0
    assert out.startswith("Cleared.\nAllowed: 0 of 2 restarts of jellyfin")
    row = CooldownClearance.objects.get()
    assert (row.service, row.action, row.by, row.reason) == ("jellyfin", "restart", "anna", "The disk is replaced.")
    assert run("check", "restart", "jellyfin")[0] == 0
    assert run("list")[1].strip() == "No limit is in use."


def test_clearing_both_as_a_document(exhausted):
    code, out, _ = run("clear", "jellyfin", "--reason", "Mended.", "--json")
    result = json.loads(out)["result"]
    assert (code, result["action"], [one["allowed"] for one in result["now"]]) == (0, None, [True, True])
    assert result["by"]


def test_clearing_what_does_not_count_is_refused():
    code, _, err = run("clear", "jelyfin", "--reason", "Mended.")
    assert code == 1
    assert "No action of jelyfin counts now" in err
    assert not CooldownClearance.objects.exists()
