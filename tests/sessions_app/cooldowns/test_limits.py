"""How often a service may be restarted or redeployed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sessions_app.cooldowns.limits import check, clear, decisions_for, in_force, limits_text
from sessions_app.errors import InvalidSession
from sessions_app.models import CooldownClearance, ServiceCheck
from tests.support.factories import CooldownActionFactory, SessionFactory

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def restarted(hours_ago, **fields):
    return CooldownActionFactory(created_at=NOW - timedelta(hours=hours_ago), **fields)


def checked(hours_ago, healthy, service="jellyfin"):
    ServiceCheck.objects.create(
        session=SessionFactory(),
        service=service,
        status="healthy" if healthy else "down",
        healthy=healthy,
        checked_at=NOW - timedelta(hours=hours_ago),
    )


def test_a_service_that_was_not_touched_may_be_restarted():
    decision = check("restart", "jellyfin", at=NOW)
    assert decision.allowed
    assert decision.reason == "Allowed: 0 of 2 restarts of jellyfin in the last 4 hours."


def test_the_third_restart_within_four_hours_is_refused_and_says_until_when():
    restarted(3)
    restarted(1)
    decision = check("restart", "jellyfin", at=NOW)
    assert not decision.allowed
    assert decision.until == NOW + timedelta(hours=1)
    assert "2 of 2 restarts of jellyfin in the last 4 hours. Allowed again at 2026-06-01 13:00 UTC" in decision.reason


def test_the_window_opens_again_with_time():
    restarted(3)
    restarted(1)
    assert check("restart", "jellyfin", at=NOW + timedelta(hours=1, seconds=1)).allowed


def test_after_more_restarts_than_allowed_time_counts_from_the_right_one():
    for hours in (3, 2, 1):
        restarted(hours)
    assert check("restart", "jellyfin", at=NOW).until == NOW + timedelta(hours=2)


def test_a_failed_attempt_counts_and_a_dry_run_does_not():
    restarted(2, outcome="failure")
    restarted(1, dry_run=True)
    assert check("restart", "jellyfin", at=NOW).used == 1


def test_one_redeployment_a_day():
    restarted(23, action="redeployment")
    assert not check("redeployment", "jellyfin", at=NOW).allowed
    assert check("restart", "jellyfin", at=NOW).allowed
    assert check("redeployment", "caddy", at=NOW).allowed


def test_the_service_is_one_whatever_its_letter_case():
    restarted(3)
    restarted(1)
    assert not check("restart", "Jellyfin", at=NOW).allowed


def test_two_healthy_checks_in_a_row_reset_the_counting():
    restarted(3)
    restarted(2)
    checked(1.5, True)
    assert not check("restart", "jellyfin", at=NOW).allowed
    checked(1, True)
    assert check("restart", "jellyfin", at=NOW).allowed
    assert check("restart", "jellyfin", at=NOW).used == 0


def test_an_unhealthy_check_between_two_healthy_ones_keeps_the_counting():
    restarted(3)
    restarted(2)
    for hours, healthy in ((1.5, True), (1.2, False), (1, True)):
        checked(hours, healthy)
    assert not check("restart", "jellyfin", at=NOW).allowed


def test_a_restart_followed_by_one_healthy_check_only_still_counts():
    checked(3, True)
    restarted(2)
    checked(1, True)
    assert check("restart", "jellyfin", at=NOW).used == 1


def test_healthy_checks_of_another_service_change_nothing():
    restarted(3)
    restarted(2)
    checked(1.5, True, service="caddy")
    checked(1, True, service="caddy")
    assert not check("restart", "jellyfin", at=NOW).allowed


def test_the_limits_are_settings(settings):
    settings.CLAUDEOPS_RESTART_LIMIT = (0, 4.0)
    decision = check("restart", "jellyfin", at=NOW)
    assert (decision.allowed, decision.reason) == (False, "Refused: restarts are switched off (limit 0).")


def test_an_unknown_action_and_a_missing_service_are_named():
    with pytest.raises(InvalidSession, match="There is no action 'reboot'"):
        check("reboot", "nas", at=NOW)
    with pytest.raises(InvalidSession, match="none was named"):
        check("restart", " ", at=NOW)


def test_the_prompts_text_names_the_limits_and_what_is_in_force():
    restarted(3)
    restarted(1)
    text = limits_text(at=NOW)
    assert "- restart: at most 2 per service within 4 hours" in text
    assert "- redeployment: at most 1 per service within 24 hours" in text
    assert "- Refused: 2 of 2 restarts of jellyfin" in text


def test_the_prompts_text_says_when_nothing_is_in_force():
    assert limits_text(at=NOW).endswith("No service has used any of them now.")


def test_what_is_in_force_lists_refused_ones_first():
    restarted(1, service="caddy")
    restarted(3)
    restarted(1)
    assert [(d.service, d.allowed) for d in in_force(at=NOW)] == [("jellyfin", False), ("caddy", True)]


# -- clearing ----------------------------------------------------------------------------------------------------


def test_what_lies_before_a_clearance_counts_no_more_and_says_so():
    restarted(3)
    restarted(1)
    row = clear("Jellyfin ", "restart", by="anna", reason="The disk is\nreplaced.", at=NOW)
    assert (row.service, row.action, row.by, row.reason, row.cleared_at) == (
        *("jellyfin", "restart", "anna", "The disk is replaced."),
        NOW,
    )
    decision = check("restart", "jellyfin", at=NOW)
    assert (decision.allowed, decision.used, decision.since) == (True, 0, NOW)
    assert decision.reason == (
        "Allowed: 0 of 2 restarts of jellyfin in the last 4 hours "
        "(not counting those before 2026-06-01 12:00 UTC, when a person cleared it)."
    )
    assert in_force(at=NOW) == []
    assert "jellyfin" not in limits_text(at=NOW)


def test_what_is_done_after_a_clearance_counts():
    restarted(3)
    restarted(2)
    clear("jellyfin", by="anna", reason="Mended.", at=NOW - timedelta(hours=1))
    restarted(0.5)
    assert check("restart", "jellyfin", at=NOW).used == 1
    restarted(0.2)
    decision = check("restart", "jellyfin", at=NOW)
    assert not decision.allowed
    assert decision.until == NOW - timedelta(hours=0.5) + timedelta(hours=4)
    assert [d.service for d in in_force(at=NOW)] == ["jellyfin"]


def test_a_clearance_is_for_one_service_and_for_one_action_or_both():
    for service in ("jellyfin", "caddy"):
        restarted(2, service=service)
        restarted(2, service=service, action="redeployment")
    clear("jellyfin", "redeployment", by="anna", reason="Mended.", at=NOW)
    clear("caddy", by="anna", reason="Mended.", at=NOW)
    assert check("redeployment", "jellyfin", at=NOW).used == 0
    assert check("restart", "jellyfin", at=NOW).used == 1
    assert [check(action, "caddy", at=NOW).used for action in ("restart", "redeployment")] == [0, 0]


def test_the_later_of_clearance_and_healthy_checks_is_what_is_counted_from():
    restarted(3)
    clear("jellyfin", by="anna", reason="Mended.", at=NOW - timedelta(hours=2.5))
    restarted(2)
    checked(1.5, True)
    checked(1, True)
    decision = check("restart", "jellyfin", at=NOW)
    assert decision.used == 0
    assert "before the healthy checks since 2026-06-01 10:30 UTC" in decision.reason


def test_before_a_clearance_was_made_it_has_no_effect():
    restarted(3)
    clear("jellyfin", by="anna", reason="Mended.", at=NOW)
    assert check("restart", "jellyfin", at=NOW - timedelta(minutes=1)).used == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"reason": " \n"}, "with a reason"),
        ({"reason": "x" * 501}, "with a reason"),
        ({"by": " "}, "who clears a cooldown must be named"),
        ({"service": " "}, "none was named"),
        ({"action": "reboot"}, "There is no action 'reboot'"),
        ({"service": "caddy"}, "No action of caddy counts now"),
        ({"action": "redeployment"}, "No redeployment of jellyfin counts now"),
    ],
)
def test_a_clearance_that_cannot_be_is_refused_and_changes_nothing(given, said):
    restarted(1)
    asked = {"service": "jellyfin", "action": None, "by": "anna", "reason": "Mended."} | given
    with pytest.raises(InvalidSession, match=said):
        clear(asked.pop("service"), asked.pop("action"), at=NOW, **asked)
    assert not CooldownClearance.objects.exists()
    assert check("restart", "jellyfin", at=NOW).used == 1


def test_what_stands_is_read_with_the_same_queries_for_any_number_of_services(django_assert_num_queries):
    names = [f"service-{n}" for n in range(20)]
    for name in names:
        restarted(1, service=name)
    for some in (names[:2], names):
        with django_assert_num_queries(3):
            decisions_for(some, at=NOW)
    with django_assert_num_queries(4):
        assert len(in_force(at=NOW)) == 20
