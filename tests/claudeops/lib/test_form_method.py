"""PUT and DELETE from a plain form, and their fields in one place."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, JsonResponse
from django.middleware.csrf import get_token
from django.test import Client
from django.urls import path

from claudeops.urls import urlpatterns as house


def echo(request: HttpRequest) -> JsonResponse:
    """What a view sees of a request."""
    return JsonResponse(
        {"method": request.method, "fields": dict(request.POST.lists()), "csrf": get_token(request)},
    )


urlpatterns = [path("echo", echo), *house]
pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_form_may_ask_for_another_method_and_keeps_its_fields(signed_in, method):
    seen = signed_in.post("/echo", {"_method": method, "observation": "Takes 60 s", "id": ["1", "2"]}).json()
    assert seen["method"] == method
    assert seen["fields"] == {"_method": [method], "observation": ["Takes 60 s"], "id": ["1", "2"]}


@pytest.mark.parametrize("asked", ["PATCH", "GET", "HEAD", "OPTIONS", "delete", "DELTE", ""])
def test_another_word_is_refused_and_never_taken_for_a_post(signed_in, asked):
    response = signed_in.post("/echo", {"_method": asked})
    assert (response.status_code, response.content) == (400, b"_method must be PUT or DELETE.")


def test_a_plain_post_stays_one_and_a_get_is_never_changed(signed_in):
    assert signed_in.post("/echo", {"a": "1"}).json()["method"] == "POST"
    assert signed_in.get("/echo", {"_method": "DELETE"}).json()["method"] == "GET"


@pytest.mark.parametrize("method", ["put", "delete"])
def test_the_fields_of_a_real_put_or_delete_are_read_too(signed_in, method):
    send = getattr(signed_in, method)
    seen = send("/echo", "a=1&a=2&b=%C3%A9", content_type="application/x-www-form-urlencoded").json()
    assert seen["method"] == method.upper()
    assert seen["fields"] == {"a": ["1", "2"], "b": ["é"]}


def test_what_is_no_form_is_left_to_the_view(signed_in):
    assert signed_in.put("/echo", '{"a": 1}', content_type="application/json").json()["fields"] == {}


def test_too_many_fields_are_refused_and_not_a_fault(signed_in, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 3
    body = "&".join(f"id={n}" for n in range(5))
    response = signed_in.put("/echo", body, content_type="application/x-www-form-urlencoded")
    assert (response.status_code, response.content) == (400, b"The form has too many fields.")


def test_the_token_is_asked_for_before_the_method_is_changed(operator):
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)
    token = client.get("/echo").json()["csrf"]
    assert client.post("/echo", {"_method": "DELETE"}).status_code == 403
    assert client.post("/echo", {"_method": "DELETE", "csrfmiddlewaretoken": "x" * 64}).status_code == 403
    assert client.post("/echo", {"_method": "DELETE", "csrfmiddlewaretoken": token}).json()["method"] == "DELETE"
    form = {"data": f"csrfmiddlewaretoken={token}", "content_type": "application/x-www-form-urlencoded"}
    assert client.put("/echo", **form).status_code == 403
    assert client.put("/echo", **form, headers={"X-CSRFToken": token}).json()["method"] == "PUT"


def test_who_is_signed_out_or_not_staff_changes_no_method(client, stranger):
    assert client.post("/echo", {"_method": "DELETE"}).status_code == 302
    client.force_login(stranger)
    assert client.post("/echo", {"_method": "DELETE"}).status_code == 403
