"""`/cooldowns`: who sees it, what is allowed and what is not, the history behind it, clearing with a reason."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.cooldowns import history, limits
from sessions_app.models import CooldownClearance, ServiceCheck
from tests.sessions_app.people import HTMX, person
from tests.support.factories import AgentFactory, CooldownActionFactory, SessionFactory

pytestmark = pytest.mark.django_db

PAGE = "/cooldowns"
ROWS = "/cooldowns/rows"


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


@pytest.fixture
def operators(client):
    client.force_login(person("operator"))
    return client


@pytest.fixture
def exhausted():
    """Jellyfin was restarted twice within the window."""
    return [restarted(3), restarted(1)]


def restarted(hours_ago, **fields):
    return CooldownActionFactory(created_at=timezone.now() - timedelta(hours=hours_ago), **fields)


def checked(hours_ago, service="jellyfin"):
    at = timezone.now() - timedelta(hours=hours_ago)
    session = SessionFactory()
    ServiceCheck.objects.create(session=session, service=service, status="healthy", healthy=True, checked_at=at)
    return session


def html_of(client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def card(html: str, service: str) -> str:
    return re.search(rf'<article class="panel cooldown" id="cooldown-{service}".*?</article>', html, re.S)[0]


def polling(html: str) -> str:
    return re.search(r'id="cooldowns-poll" hidden hx-get="([^"]+)"', html)[1].replace("&amp;", "&")


# -- who ---------------------------------------------------------------------------------------------------------


def test_signed_out_the_page_leads_to_the_sign_in_and_the_fragment_is_refused(client):
    response = client.get(PAGE)
    assert (response.status_code, response["Location"]) == (302, "/login?next=/cooldowns")
    assert client.get(ROWS, headers=HTMX).status_code == 403
    assert client.post(PAGE, {"service": "jellyfin", "reason": "x"}, headers=HTMX).status_code == 403


def test_staff_without_a_role_sees_nothing(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    assert client.get(PAGE).status_code == 403
    assert client.get(ROWS).status_code == 403


def test_a_viewer_sees_what_is_refused_and_cannot_clear_it(viewer, exhausted):
    html = html_of(viewer, PAGE)
    assert "not allowed" in card(html, "jellyfin")
    assert "<form" not in card(html, "jellyfin")
    for headers in ({}, HTMX):
        assert viewer.post(PAGE, {"service": "jellyfin", "reason": "Mended."}, headers=headers).status_code == 403
    assert not CooldownClearance.objects.exists()


# -- what is shown -----------------------------------------------------------------------------------------------


def test_a_service_shows_what_is_allowed_what_is_not_and_until_when(viewer, exhausted):
    until = exhausted[0].created_at + timedelta(hours=4)
    found = card(html_of(viewer, PAGE), "jellyfin")
    restart, redeployment = re.findall(r"<li>.*?</li>", found)[:2]
    assert "not allowed" in restart
    assert "2 of 2" in restart
    assert f'title="{until:%Y-%m-%d %H:%M:%S} UTC"' in restart
    assert "not allowed" not in redeployment
    assert "0 of 1" in redeployment


def test_the_history_tells_outcome_reason_and_session_and_what_counts(viewer):
    session = SessionFactory(agent=AgentFactory(slug="mend"))
    restarted(1, session=session, outcome="failure", message="It <hung> again")
    restarted(2, dry_run=True)
    restarted(30, session=None)
    found = card(html_of(viewer, PAGE), "jellyfin")
    last, dry, old = re.findall(r"<li>.*?</li>", found)[2:]
    assert "badge-failure" in last
    assert "restart: It &lt;hung&gt; again" in last
    assert f'href="/sessions/{session.pk}">#{session.pk} mend</a>' in last
    assert "counts ·" in last
    assert "dry run" in dry
    assert "counts ·" not in dry + old


def test_two_healthy_checks_in_a_row_stand_in_the_history_that_they_ended(viewer, exhausted):
    first, _ = checked(0.8), checked(0.5)
    checked(0.8, "caddy"), checked(0.5, "caddy")
    restarted(30, service="caddy")
    html = html_of(viewer, PAGE)
    reset = re.search(r"<li>[^\n]*?Counter reset.*?</li>", card(html, "jellyfin"))[0]
    assert f'href="/sessions/{first.pk}"' in reset
    assert "counts ·" not in card(html, "jellyfin")
    assert "Counter reset" not in card(html, "caddy")


def test_refused_services_come_first_then_those_with_something_that_counts(viewer, exhausted):
    restarted(0.5, service="caddy")
    restarted(0.1, service="old", dry_run=True)
    assert re.findall(r'<article [^>]*id="cooldown-(\w+)"', html_of(viewer, PAGE)) == ["jellyfin", "caddy", "old"]


def test_one_service_can_be_looked_at_with_all_of_its_history(viewer):
    for hours in range(1, 12):
        restarted(hours * 24, message=f"number {hours}.")
    restarted(1, service="caddy")
    all_services, one = html_of(viewer, PAGE), html_of(viewer, f"{PAGE}?service=Jellyfin")
    assert "number 11." not in all_services
    assert "The newest 5." in all_services
    assert "number 11." in one
    assert "cooldown-caddy" not in one


def test_without_any_it_says_what_the_limits_are_and_where_actions_come_from(viewer):
    html = html_of(viewer, PAGE)
    assert "restarted 2 times within 4 hours and redeployed once within 24 hours" in html
    assert "Nothing was restarted or redeployed in the last 30 days" in html
    assert "No actions." in html_of(viewer, f"{PAGE}?service=caddy")


def test_the_number_of_queries_does_not_depend_on_the_number_of_services(operators):
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            html_of(operators, PAGE)
        return len(queries)

    for n in range(5):
        restarted(1, service=f"one-{n}")
    html_of(operators, PAGE)
    few = asked()
    for n in range(5):
        restarted(1, service=f"two-{n}")
        checked(0.5, f"two-{n}")
    assert asked() == few


# -- polling -----------------------------------------------------------------------------------------------------


def test_a_poll_brings_nothing_while_nothing_changed_and_all_when_something_was_written(viewer, exhausted):
    address = polling(html_of(viewer, PAGE))
    response = viewer.get(address, headers=HTMX)
    assert (response.status_code, response.content) == (204, b"")
    restarted(0.1, service="caddy")
    html = html_of(viewer, address, **HTMX)
    assert html.startswith('<section id="cooldowns"')
    assert "cooldown-caddy" in html
    assert viewer.get(polling(html), headers=HTMX).status_code == 204
    checked(0.1)
    assert viewer.get(polling(html), headers=HTMX).status_code == 200


def test_a_poll_brings_what_time_alone_allows_again(viewer, exhausted, monkeypatch):
    address = polling(html_of(viewer, PAGE))
    later = exhausted[0].created_at + timedelta(hours=4, seconds=2)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    assert "not allowed" not in html_of(viewer, address, **HTMX)


def test_a_token_that_is_none_is_answered_with_everything(viewer, exhausted):
    assert "cooldown-jellyfin" in html_of(viewer, f"{ROWS}?seen=%F0%9F%92%A9-x", **HTMX)


# -- clearing ----------------------------------------------------------------------------------------------------


def test_an_operator_clears_with_a_reason_as_a_plain_form(operators, exhausted):
    restarted(1, service="caddy")
    response = operators.post(PAGE, {"service": "jellyfin", "action": "restart", "reason": " The disk is replaced. "})
    assert (response.status_code, response["Location"]) == (302, PAGE)
    assert [str(message) for message in get_messages(response.wsgi_request)] == ["Restart of jellyfin: cleared."]
    row = CooldownClearance.objects.get()
    assert (row.service, row.action, row.by, row.reason) == (
        *("jellyfin", "restart", "one-operator"),
        "The disk is replaced.",
    )
    assert limits.check("restart", "jellyfin").allowed
    assert limits.check("restart", "caddy").used == 1
    found = card(html_of(operators, PAGE), "jellyfin")
    assert "restart: The disk is replaced." in found
    assert "by one-operator" in found
    assert "<form" not in found


def test_htmx_gets_the_services_part_and_a_message(operators, exhausted):
    response = operators.post(PAGE, {"service": "jellyfin", "action": "", "reason": "Mended."}, headers=HTMX)
    html = response.content.decode()
    assert response.status_code == 200
    assert html.startswith('<article class="panel cooldown" id="cooldown-jellyfin"')
    assert "not allowed" not in html
    assert '<div id="toasts" hx-swap-oob="beforeend">' in html
    assert "Restart and redeployment of jellyfin: cleared." in html


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
def test_without_a_reason_nothing_is_cleared_and_it_is_said_there(operators, exhausted, headers):
    response = operators.post(PAGE, {"service": "jellyfin", "reason": " "}, headers=headers)
    assert response.status_code == 422
    found = card(response.content.decode(), "jellyfin")
    assert "A reason is required" in found
    assert "open><summary>Clear" in found
    assert not CooldownClearance.objects.exists()


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
def test_what_was_cleared_meanwhile_is_said_and_not_cleared_twice(operators, exhausted, headers):
    limits.clear("jellyfin", by="ben", reason="Mended.")
    response = operators.post(PAGE, {"service": "jellyfin", "reason": "Mended, too."}, headers=headers)
    assert response.status_code == 422
    assert "there is nothing to clear" in card(response.content.decode(), "jellyfin")
    assert CooldownClearance.objects.count() == 1


def test_an_action_that_is_none_and_a_missing_service_are_named(operators, exhausted):
    response = operators.post(PAGE, {"service": "jellyfin", "action": "reboot", "reason": "Mended."})
    assert response.status_code == 422
    assert "reboot is not one of the available choices" in card(response.content.decode(), "jellyfin")
    for headers in ({}, HTMX):
        response = operators.post(PAGE, {"service": "", "reason": "Mended."}, headers=headers)
        assert response.status_code == 422
        assert "This field is required." in response.content.decode()
    assert not CooldownClearance.objects.exists()


def test_clearing_leads_back_to_the_service_that_was_looked_at(operators, exhausted):
    response = operators.post(f"{PAGE}?service=jellyfin", {"service": "jellyfin", "reason": "Mended."})
    assert response["Location"] == f"{PAGE}?service=jellyfin"


def test_services_that_do_not_fit_stand_on_a_further_page(viewer, monkeypatch):
    monkeypatch.setattr(history, "SERVICES", 2)
    for hours, name in enumerate(("one", "two", "three", "four", "five"), start=1):
        restarted(hours, service=name)
    pages, address = [], PAGE
    while address:
        html = viewer.get(address).content.decode()
        pages.append(re.findall(r'data-row="(\w+)"', html))
        found = re.search(r'href="([^"]+)" rel="next"', html)
        assert viewer.get(polling(html), headers=HTMX).status_code == 204
        address = unescape(found[1]) if found else ""
    assert [set(names) for names in pages] == [{"one", "two"}, {"three", "four"}, {"five"}]
    assert re.search(rf'href="{PAGE}[?]?">Newest</a>', html)


def test_what_was_done_over_thirty_days_ago_or_is_still_to_come_is_not_listed(viewer):
    restarted(31 * 24, service="old")
    restarted(-2, service="tomorrow")
    restarted(29 * 24, service="recent")
    assert history.acted_on() == ["recent"]
