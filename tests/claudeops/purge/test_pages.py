"""The pages of purges: choose, count, confirm by the number, read the receipt. For administrators."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape
from django_q.models import OrmQ

from claudeops import tasks
from claudeops.features.purge import run
from claudeops.features.purge.choice import Choice
from claudeops.roles import OPERATOR, set_up_roles
from memories.models import Memory
from sessions_app.models import Purge, PurgeState
from sessions_app.runner.launch import folder_of
from tests.claudeops.purge.house import TEXT, furnish, places_of
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def signed_in(client, operator):
    client.force_login(operator)
    return client


def planned(signed_in, **data) -> Purge:
    response = signed_in.post("/forget", data)
    assert response.status_code == 302, response.content.decode()
    return Purge.objects.latest("pk")


def test_a_memory_is_forgotten_from_its_page_on(signed_in):
    memory = furnish()
    page = signed_in.get(f"/memories/{memory.pk}").content.decode()
    assert 'action="/forget"' in page and f'name="id" value="{memory.pk}"' in page
    purge = planned(signed_in, id=memory.pk)
    assert (purge.state, purge.chosen, purge.work) == (PurgeState.PLANNED, {"ids": [memory.pk]}, {})
    address = f"/forget/{purge.pk}"
    assert "is being counted" in signed_in.get(address).content.decode()
    assert {row.task["func"] for row in OrmQ.objects.all()} == {"claudeops.tasks.count_purge"}
    tasks.count_purge(purge.pk)
    shown = signed_in.get(address).content.decode()
    words = " ".join(unescape(re.sub(r"<[^>]+>", " ", shown)).split())
    assert f"{TEXT} memory {memory.pk}" in words and "Type 1, the number of memories" in words
    for place, address_of in (("Logs of sessions", "/sessions"), ("Prompts of sessions: the memories", "/sessions")):
        assert f'<a href="{address_of}">{place}</a>' in shown
    assert not re.search(r"sha256|\b[a-z]+_[a-z_]+\b|[a-z]/\*\*/", words)
    assert signed_in.post(address, {"number": "2"}).status_code == 422
    assert Memory.objects.filter(pk=memory.pk).exists()
    assert signed_in.post(address, {"number": "1"}).status_code == 302
    tasks.purge(purge.pk)
    assert Purge.objects.get().state == PurgeState.DONE
    assert places_of() == [] or connection.vendor == "postgresql"
    receipt = signed_in.get(address).content.decode()
    assert "What was removed" in receipt and "Logs of sessions" in receipt and "flower" not in receipt
    assert signed_in.post(address, {"number": "1"}).status_code == 422


def test_a_selection_of_the_list_is_planned_and_dropped(signed_in):
    chosen = MemoryFactory.create_batch(2, service="vault")
    MemoryFactory(service="nas")
    assert 'formaction="/forget?service=vault"' in signed_in.get("/memories?service=vault").content.decode()
    purge = planned(signed_in, action="purge", id=[chosen[0].pk, chosen[1].pk])
    assert purge.chosen == {"ids": sorted(memory.pk for memory in chosen)}
    response = signed_in.post("/forget?service=vault", {"action": "purge", "all_matching": "1"})
    assert Purge.objects.latest("pk").chosen == purge.chosen and response.status_code == 302
    assert signed_in.post(f"/forget/{purge.pk}/drop").status_code == 302
    assert not Purge.objects.filter(pk=purge.pk).exists() and Memory.objects.count() == 3


def test_filters_of_the_form_are_planned_and_what_is_wrong_is_said(signed_in):
    MemoryFactory(service="vault")
    assert planned(signed_in, service="vault").chosen == {"service": "vault"}
    for data, said in (({}, "Give IDs or filters"), ({"session": "99"}, "There is no session 99")):
        response = signed_in.post("/forget", data)
        assert response.status_code == 422 and said in response.content.decode()


def test_a_text_is_forgotten_from_the_page_and_stands_nowhere_afterwards(signed_in):
    furnish()
    purge, other = planned(signed_in, query=TEXT), planned(signed_in, query=TEXT)
    assert purge.chosen["query"].startswith("sha256:") and purge.work == {"query": TEXT}
    tasks.count_purge(purge.pk)
    address = f"/forget/{purge.pk}"
    shown = signed_in.get(address).content.decode()
    assert escape(TEXT) in shown and "sha256" not in shown
    number = Purge.objects.get(pk=purge.pk).receipt["plan"]["memories"]
    assert number >= 1
    assert signed_in.post(address, {"number": str(number)}).status_code == 302
    tasks.purge(purge.pk)
    done = Purge.objects.get()
    assert (done.pk, done.state, done.work) == (purge.pk, PurgeState.DONE, {}), "the other plan holds the text"
    assert places_of() == [] or connection.vendor == "postgresql"
    shown = signed_in.get(address).content.decode()
    assert "removed, and not kept" in shown and "sha256" not in shown and "flower" not in shown
    assert not Purge.objects.filter(pk=other.pk).exists()


def test_a_short_word_is_shown_where_it_stands_and_forgotten_as_a_whole_word(signed_in):
    session = SessionFactory(response="Call Anna at 8, not Hanna", summary="“anna” knows")
    stays = [MemoryFactory(observation=text) for text in ("Hanna has the ladder", "The annals are in room 3")]
    for text in ("Anna has the key", "Ask ANNA", "It is Anna's"):
        MemoryFactory(observation=text)
    log = folder_of(session) / "stdout-1.jsonl"
    log.parent.mkdir(parents=True)
    lines = [json.dumps({"t": text}, ensure_ascii=False) for text in ("Hanna\nanna\n", "…anna… Änna", "x", "Annaé")]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    purge = planned(signed_in, query="anna")
    tasks.count_purge(purge.pk)
    address = f"/forget/{purge.pk}"
    shown = unescape(signed_in.get(address).content.decode())
    for text in ("Anna has the key", "Ask ANNA", "It is Anna's", "Call Anna at 8, not Hanna", "“anna” knows"):
        assert text in shown
    assert "as a whole word" in shown and "ladder" not in shown and "annals" not in shown
    assert signed_in.post(address, {"number": "5"}).status_code == 422
    assert signed_in.post(address, {"number": "3"}).status_code == 302
    tasks.purge(purge.pk)
    assert (Purge.objects.get().state, Purge.objects.get().work) == (PurgeState.DONE, {})
    assert set(Memory.objects.values_list("pk", flat=True)) == {memory.pk for memory in stays}
    session.refresh_from_db()
    assert (session.response, session.summary) == ("Call [purged] at 8, not Hanna", "“[purged]” knows")
    said = [json.loads(line)["t"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert said == ["Hanna\n****\n", "…****… Änna", "x", "Annaé"]


def test_a_plan_with_a_text_is_forgotten_after_a_day(signed_in):
    furnish()
    purge, by_service = planned(signed_in, query=TEXT), planned(signed_in, service="vault")
    assert run.drop_old() == 0
    assert run.drop_old(purge.created_at + run.PLANNED_FOR + timedelta(seconds=1)) == 1
    assert Purge.objects.get().pk == by_service.pk


def test_the_poll_answers_only_when_something_happened(signed_in):
    memory = furnish()
    purge = run.ask(Choice(ids=(memory.pk,)), by="ann")
    page = signed_in.get(f"/forget/{purge.pk}")
    seen = page.context["seen"]
    with CaptureQueriesContext(connection) as asked:
        assert signed_in.get(f"/forget/{purge.pk}/live?seen={seen}").status_code == 204
    assert len(asked) <= 5
    run.count(purge.pk)
    assert "What would be removed" in signed_in.get(f"/forget/{purge.pk}/live?seen={seen}").content.decode()


def test_the_list_asks_the_same_number_of_queries_for_any_number_of_purges(signed_in):
    numbers = []
    for _ in range(2):
        for _ in range(10):
            Purge.objects.create(by="ann", chosen={"service": "x"})
        with CaptureQueriesContext(connection) as asked:
            assert signed_in.get("/forget").status_code == 200
        numbers.append(len(asked))
    assert numbers[0] == numbers[1]


def test_an_operator_may_not_and_sees_no_button(client):
    set_up_roles()
    user = get_user_model().objects.create_user("op", password="a long password", is_staff=True)
    user.groups.set(Group.objects.filter(name=OPERATOR))
    client.force_login(user)
    memory = MemoryFactory(observation=TEXT)
    assert 'action="/forget"' not in client.get(f"/memories/{memory.pk}").content.decode()
    assert "Forget everywhere" not in client.get("/memories").content.decode()
    for address in ("/forget", "/forget/1", "/forget/1/live"):
        assert client.get(address).status_code == 403
    assert client.post("/forget", {"id": memory.pk}).status_code == 403
