"""The list of changes of memories: one sentence each, by whom, the confidence before and after."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta
from html import unescape

import pytest
from django.utils import timezone

from memories.models import Change, MemoryChange
from memories.queries import filters
from tests.sessions_app.people import person
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def signed_in(client):
    client.force_login(person("viewer"))
    return client


def shown(client, query=""):
    """The ids of the changes that the list shows."""
    html = client.get(f"/memories/changes?{query}").content.decode()
    return [int(pk) for pk in re.findall(r'<tr id="change-(\d+)"', html)]


def change(kind="created", **given):
    given.setdefault("memory", MemoryFactory())
    return MemoryChange.objects.create(kind=kind, **given)


def test_a_change_is_one_sentence_with_its_memory_and_the_confidence_before_and_after(signed_in):
    memory, session = MemoryFactory(observation="The <b>dump</b> takes an hour"), SessionFactory()
    told = {"before": {"confidence": 0.7}, "after": {"confidence": 0.8}}
    made = change("reinforced", memory=memory, session=session, actor="agent:watch", **told)
    html = signed_in.get("/memories/changes").content.decode()
    text = " ".join(unescape(re.sub(r"<[^>]+>", " ", html[html.index("<tbody ") : html.index("</tbody>")])).split())
    assert f"Session {session.pk} confirmed it" in text
    assert "The <b>dump</b> takes an hour" in text
    assert "0.70 → 0.80" in text
    assert f'href="/memories/{memory.pk}#change-{made.pk}"' in html
    assert "<b>dump" not in html


def test_every_kind_of_change_has_a_row_a_filter_and_a_line_in_the_file(signed_in):
    made = {kind: change(kind).pk for kind in Change.values}
    assert set(shown(signed_in, "size=25")) == set(made.values())
    for one in MemoryChange.objects.all():
        assert one.pk in shown(signed_in, f"kind={one.listed_as}"), one.kind
    lines = b"".join(signed_in.get("/memories/changes?format=csv").streaming_content)
    assert len(lines.splitlines()) == len(made) + 1


def test_what_a_deleted_memory_said_is_read_from_its_change(signed_in):
    change("deleted", memory=None, actor="anna", before={"observation": "It was wrong"})
    html = signed_in.get("/memories/changes").content.decode()
    assert "It was wrong" in html
    assert "anna deleted it." in html


def test_each_view_shows_its_kind_and_counts_it(signed_in):
    made = {
        "learned": [change("created")],
        "confirmed": [change("reinforced"), change("backed")],
        "contradicted": [change("contradicted")],
        "faded": [change("expired"), change("decayed", after={"active": False})],
        "decayed": [change("decayed", after={"confidence": 0.6})],
        "edited": [change("edited")],
    }
    for kind, rows in made.items():
        assert shown(signed_in, f"kind={kind}") == [row.pk for row in reversed(rows)]
        html = signed_in.get(f"/memories/changes?kind={kind}").content.decode()
        [said] = re.findall(r'id="memory-changes-count">\s*([^<]+?)\s*</p>', html)
        assert said == ("1 change that matches" if len(rows) == 1 else f"{len(rows)} changes that match")
    assert signed_in.get("/memories/changes?kind=reinforced").content.decode().count("<tr id=") == 0


@pytest.mark.parametrize(
    ("actor", "whom"),
    [
        *(("anna", "people"), ("token deploy", "people"), ("system", "system"), ("", "system"), ("mcp", "sessions")),
        *(("agent:watch", "sessions"), ("session:12", "sessions"), ("import", "sessions")),
    ],
)
def test_who_made_a_change_is_told_by_its_actor(signed_in, actor, whom):
    made = change("edited", actor=actor)
    assert [name for name in ("people", "sessions", "system") if shown(signed_in, f"by={name}")] == [whom]
    if actor:
        change("edited", actor="another")
        assert shown(signed_in, f"by={actor}") == [made.pk]


def test_a_period_a_session_a_memory_a_service_and_words_narrow_the_list(signed_in, monkeypatch):
    now, session = timezone.now(), SessionFactory()
    old = change(at=now - timedelta(days=3), memory=MemoryFactory(service="caddy", observation="The proxy is slow"))
    new = change(session=session, memory=MemoryFactory(service=None))
    assert shown(signed_in, "during=24h") == [new.pk]
    assert shown(signed_in, f"session={session.pk}") == [new.pk]
    assert shown(signed_in, f"memory={old.memory_id}") == [old.pk]
    assert shown(signed_in, "service=caddy") == shown(signed_in, "text=slow+PROXY") == [old.pk]
    assert shown(signed_in, "service=general") == [new.pk]
    monkeypatch.setattr(filters, "SEARCHED", 1)
    assert shown(signed_in, "service=caddy") == []


def test_typed_tokens_become_an_address(signed_in):
    answer = signed_in.get("/memories/changes?q=kind:faded+by:system+slow")
    assert answer.headers["Location"] == "/memories/changes?kind=faded&by=system&text=slow"


def test_what_is_listed_is_exported_as_csv_and_json(signed_in):
    change("edited", actor="anna", before={"confidence": 0.7}, after={"confidence": 0.9})
    change("created")
    [head, row] = csv.reader(io.StringIO(signed_in.get("/memories/changes?kind=edited&format=csv").getvalue().decode()))
    assert head == ["id", "kind", "what", "memory", "by", "confidence", "when"]
    assert (row[1], row[4], row[5]) == ("edited", "anna", "0.9")
    [one] = json.loads(signed_in.get("/memories/changes?kind=edited&format=json").getvalue())
    assert one["what"] == "anna changed the confidence from 0.70 to 0.90."


def test_only_those_who_may_see_memories_see_their_changes(client, stranger):
    assert client.get("/memories/changes").status_code == 302
    client.force_login(stranger)
    assert client.get("/memories/changes").status_code == 403
