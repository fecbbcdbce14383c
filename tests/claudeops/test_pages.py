"""Signing in, who may see the front page, and the pages that say no: what a person meets before the admin."""

from __future__ import annotations

import re

import pytest
from django.template.loader import render_to_string
from django.test import Client

from tests.claudeops.front import FRAGMENT, HTMX, front
from tests.support.factories import EventFactory, MemoryFactory, SessionFactory


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def test_a_signed_out_fragment_is_403_and_never_a_sign_in_page(client, db):
    for url in ("/", "/feed"):
        assert client.get(url).headers["Location"] == f"/login?next={url}"
    response = client.get(FRAGMENT, headers=HTMX)
    assert response.status_code == 403
    assert b"<form" not in response.content
    assert b"Reload the page to sign in" in response.content


def test_nothing_here_is_kept_by_a_cache_or_changed_by_a_post(signed_in):
    assert "no-store" in signed_in.get("/").headers["Cache-Control"]
    assert "no-store" in signed_in.get(FRAGMENT).headers["Cache-Control"]
    assert signed_in.post("/").status_code == 405


@pytest.mark.parametrize(
    ("address", "label"),
    [
        ("/", "Overview"),
        ("/feed", "Overview"),
        ("/memories", "Memories"),
        ("/memories/changes", "Changes"),
        ("/memories/timed", "Memories"),
        ("/trace", "Recall"),
        ("/ask", "Recall"),
        ("/memories/recall/asked", "Recall"),
        ("/learning-log", "Learning log"),
    ],
)
def test_the_sidebar_marks_the_one_entry_whose_page_is_shown(signed_in, address, label):
    nav = re.findall(r'<nav class="side-nav".*?</nav>', signed_in.get(address).content.decode(), re.DOTALL)
    marked = re.findall(r'aria-current="page">([^<]+)<', nav[0])
    assert marked == [label]


def test_former_addresses_lead_to_the_pages_of_today(signed_in):
    for old, new in (
        ("/desk?view=held&item=held-3", "/inbox?view=held&item=held-3"),
        ("/memories/inbox", "/inbox"),
        ("/memories/surfacing", "/memories/timed"),
        ("/purges/7", "/forget/7"),
        ("/telemetry/decisions?range=7d", "/diagnostics/decisions?range=7d"),
        ("/transcripts/3", "/learning-log/3"),
    ):
        answer = signed_in.get(old)
        assert (answer.status_code, answer.url) == (302, new)
    assert signed_in.get("/desktop").status_code == 404


# -- signing in and out ------------------------------------------------------------------------------------------


def test_a_signed_out_browser_is_sent_to_sign_in_and_back_to_where_it_wanted(client, operator):
    assert client.get("/admin/memories/memory/").headers["Location"] == "/login?next=/admin/memories/memory/"
    response = client.post(
        "/login", {"username": "operator", "password": "a long password", "next": "/admin/memories/memory/"}
    )
    assert response.headers["Location"] == "/admin/memories/memory/"
    assert client.get("/").status_code == 200


def test_a_wrong_password_is_said_without_saying_which_part_was_wrong(client, operator):
    response = client.post("/login", {"username": "operator", "password": "wrong"})
    assert response.status_code == 200
    html = response.content.decode()
    assert 'role="alert"' in html
    assert "correct username and password" in html
    assert 'value="operator"' in html


@pytest.mark.parametrize(
    "after", ["/login", "/login?next=/login", "//evil.example", "https://evil.example/", "javascript:x"]
)
def test_signing_in_never_leads_in_a_circle_or_to_another_house(client, operator, after):
    response = client.post("/login", {"username": "operator", "password": "a long password", "next": after})
    assert response.headers["Location"] == "/"
    assert client.get("/login", {"next": after}).headers["Location"] == "/"


def test_the_admins_own_sign_in_leads_to_the_one_there_is(client, operator):
    assert client.get("/admin/login/?next=/admin/").headers["Location"] == "/login?next=/admin/"
    assert client.post("/admin/login/", {"username": "operator"}).headers["Location"] == "/login?next=/admin/"
    client.force_login(operator)
    assert client.get("/admin/login/").headers["Location"] == "/admin/"


def test_signing_out_is_a_post_and_leads_to_the_sign_in_page(signed_in):
    assert signed_in.get("/logout").status_code == 405
    assert signed_in.post("/logout").headers["Location"] == "/login"
    assert signed_in.get("/").status_code == 302


@pytest.mark.parametrize("url", ["/", "/admin/", "/admin/memories/memory/", FRAGMENT])
def test_an_account_that_is_not_staff_is_told_so_and_can_sign_out(client, stranger, url):
    client.force_login(stranger)
    response = client.get(url)
    assert response.status_code == 403
    html = " ".join(response.content.decode().split())
    assert "<strong>stranger</strong>, and this account is not marked as staff" in html
    assert 'action="/logout"' in html
    assert "Memories" not in html
    assert client.post("/logout").headers["Location"] == "/login"
    assert client.get("/login").status_code == 200


def test_a_stranger_who_signs_in_meets_the_403_page_and_no_circle(client, stranger):
    response = client.post("/login", {"username": "stranger", "password": "a long password"}, follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert response.status_code == 403
    assert client.get("/login", follow=True).status_code == 403


def test_staff_without_a_permission_are_told_that(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("junior", is_staff=True))
    response = client.get("/admin/memories/memory/")
    assert response.status_code == 403
    assert "<strong>junior</strong> has no permission for this page" in response.content.decode()


# -- pages that say no -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["/", "/feed", FRAGMENT])
def test_staff_without_a_role_see_nothing_of_what_goes_on(client, django_user_model, url):
    EventFactory(message="A secret")
    client.force_login(django_user_model.objects.create_user("junior", is_staff=True))
    response = client.get(url)
    assert response.status_code == 403
    assert "A secret" not in response.content.decode()


@pytest.mark.django_db
def test_an_address_that_leads_nowhere_has_a_page_and_shows_it_as_text(client):
    response = client.get("/no/<b>such</b>")
    assert response.status_code == 404
    assert b"Page not found" in response.content
    assert b"<b>such" not in response.content


def test_the_page_for_a_fault_needs_nothing_that_may_be_broken():
    html = render_to_string("500.html")
    assert "Internal error" in html
    assert "{%" not in html


def test_a_form_that_is_too_old_is_explained(operator):
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    response = client.post("/logout")
    assert response.status_code == 403
    assert b"The form was not accepted" in response.content


# -- the content policy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "/",
        "/admin/",
        "/admin/memories/memory/",
        "/admin/memories/memory/add/",
        "/admin/sessions_app/session/",
        "/admin/sessions_app/agent/add/",
        "/admin/auth/user/",
        "/no/such/page",
    ],
)
def test_no_page_needs_an_inline_style_or_script(signed_in, url):
    MemoryFactory()
    SessionFactory()
    response = signed_in.get(url)
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    html = response.content.decode()
    assert not re.search(r"<[^>]+\sstyle=", html)
    assert not re.search(r"<[^>]+\son\w+=", html)
    assert "<style" not in html
    assert not re.search(r"<script(?![^>]*\ssrc=)", html)


def test_what_pages_link_to_is_served_and_comes_from_here(signed_in):
    html = front(signed_in) + signed_in.get("/admin/memories/memory/").content.decode()
    urls = set(re.findall(r'<(?:link|script|img)[^>]+(?:href|src)="([^"]+)"', html))
    assert {"/static/claudeops/app.css", "/static/claudeops/app.js", "/static/claudeops/favicon.svg"} <= urls
    for url in urls:
        assert url.startswith("/"), url
        assert signed_in.get(url).status_code == 200, url


def test_htmx_is_told_to_do_without_eval_and_inline_styles(signed_in):
    found = re.search(r"<meta name=\"htmx-config\" content='([^']+)'", front(signed_in))
    assert found
    assert '"allowEval":false' in found.group(1)
    assert '"includeIndicatorStyles":false' in found.group(1)
