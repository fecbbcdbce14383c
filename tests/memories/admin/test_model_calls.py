"""The calls of models in the admin: read, never written."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import ModelCall

LIST = "/admin/memories/modelcall/"

pytestmark = pytest.mark.django_db


def a_call(role="observer", **given):
    given = {"backend": "claude", "model": "haiku", "prompt_hash": "a" * 64, "outcome": "answered"} | given
    return ModelCall.objects.create(role=role, **given)


def listed(client, **query):
    found = client.get(LIST, query)
    assert found.status_code == 200
    return [row.pk for row in found.context["cl"].result_list]


def test_a_person_reads_what_was_asked_and_what_it_cost(client, operator):
    client.force_login(operator)
    a_call(cost_usd=0.0123, tokens_in=1200, tokens_out=80, duration_ms=1500)
    page = client.get(LIST).content.decode()
    assert "1,200, 80" in page and "claude:haiku" in page and "$0.01" in page and "1.5 s" in page


def test_it_is_filtered_by_role_outcome_and_day(client, operator):
    client.force_login(operator)
    observer, judge = a_call(), a_call("judge", outcome="failed", error="HTTP 500")
    old = a_call("judge", asked_at=timezone.now() - timedelta(days=3))
    assert listed(client) == [judge.pk, observer.pk, old.pk]
    assert listed(client, role="judge") == [judge.pk, old.pk]
    assert listed(client, outcome__exact="failed") == [judge.pk]
    assert listed(client, age="day") == [judge.pk, observer.pk]
    assert listed(client, role="nobody") == []


@pytest.mark.parametrize("address", [f"{LIST}add/", "{}change/", "{}delete/"])
def test_nobody_writes_one(client, admin_client, address):
    call = a_call()
    before = ModelCall.objects.values().get()
    admin_client.post(address.format(f"{LIST}{call.pk}/"), {"role": "judge", "post": "yes"})
    assert ModelCall.objects.values().get() == before


def test_an_error_of_a_backend_is_shown_as_text(client, operator):
    client.force_login(operator)
    a_call(outcome="failed", error="<script>alert(1)</script>")
    page = client.get(LIST).content.decode()
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_its_queries_do_not_grow_with_the_calls(client, operator):
    client.force_login(operator)

    def queries():
        with CaptureQueriesContext(connection) as captured:
            client.get(LIST)
        return len(captured)

    for _ in range(10):
        a_call(), a_call("judge")
    few = queries()
    for _ in range(10):
        a_call()
    assert queries() == few
