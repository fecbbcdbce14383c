"""What sessions were told, from the side of a memory: the rows, their filling from old receipts, the pages."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.injection.ops import build
from memories.lifecycle import verbs
from memories.models import Memory, MemoryChange
from sessions_app import receipts
from sessions_app.models import Injected, InjectionReceipt, Session
from sessions_app.runner.launch import inject
from tests.factories import MemoryFactory, ProjectFactory, SessionFactory
from tests.sessions_app.people import HTMX, person

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture
def viewer(db) -> Client:
    client = Client()
    client.force_login(person("viewer"))
    return client


def told_by(session: Session) -> set[int]:
    return set(Injected.objects.filter(session=session).values_list("memory_id", flat=True))


def html_of(client: Client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def tell(memory_id: int, count: int) -> list[Session]:
    sessions = [SessionFactory() for _ in range(count)]
    Injected.objects.bulk_create(Injected(session=session, memory_id=memory_id) for session in sessions)
    return sessions


# -- the rows ----------------------------------------------------------------------------------------------------


def test_the_rows_are_what_the_receipt_includes_and_nothing_that_was_left_out():
    first, second = MemoryFactory(), MemoryFactory()
    MemoryFactory(active=False)
    session = SessionFactory()
    inject(session, at=NOW)
    assert told_by(session) == {first.pk, second.pk}
    assert {entry["id"] for entry in session.receipt.included} == told_by(session)


def test_a_session_that_is_started_again_was_told_what_the_last_attempt_was():
    first, second = MemoryFactory(), MemoryFactory()
    session, other = SessionFactory(), SessionFactory()
    inject(session, at=NOW)
    inject(other, at=NOW)
    verbs.deactivate(first, by="ann")
    inject(session, at=NOW)
    assert told_by(session) == {second.pk}
    assert told_by(other) == {first.pk, second.pk}


def test_they_outlive_the_memory_and_go_with_the_session():
    memory, session = MemoryFactory(), SessionFactory()
    inject(session, at=NOW)
    pk = memory.pk
    verbs.delete(memory, by="ann")
    assert told_by(session) == {pk}
    session.delete()
    assert not Injected.objects.exists()


def fill() -> None:
    migration = import_module("sessions_app.migrations.0005_fill_injected")
    migration.fill(apps, SimpleNamespace(connection=connection))


def old_receipt(included: object) -> Session:
    session = SessionFactory()
    InjectionReceipt.objects.create(session=session, sha256="a" * 64, budget=1, tokens=1, included=included)
    return session


def test_old_receipts_get_their_rows_and_a_second_time_changes_nothing(monkeypatch):
    migration = import_module("sessions_app.migrations.0005_fill_injected")
    monkeypatch.setattr(migration, "BATCH", 2)
    sessions = [old_receipt([{"id": number}, {"id": 100}]) for number in range(1, 6)]
    odd = old_receipt([{"id": "x"}, {"no": 1}, "text", 7, {"id": None}, {"id": 8}, {"id": 8}])
    nothing = [old_receipt([]), old_receipt({})]
    Injected.objects.create(session=sessions[0], memory_id=1)
    fill()
    rows = set(Injected.objects.values_list("session", "memory_id"))
    fill()
    assert set(Injected.objects.values_list("session", "memory_id")) == rows
    assert [told_by(session) for session in sessions] == [{number, 100} for number in range(1, 6)]
    assert told_by(odd) == {8}
    assert not any(told_by(session) for session in nothing)


def test_the_sessions_of_a_memory_are_found_by_an_index():
    tell(7, 3)
    rows = Injected.objects.filter(memory_id=7, session__lt=10**9).order_by("-session").values_list("session")[:50]
    if connection.vendor == "sqlite":
        plan = rows.explain()
        assert "COVERING INDEX" in plan
        assert "SCAN" not in plan
        assert "TEMP B-TREE" not in plan


# -- the pages ---------------------------------------------------------------------------------------------------


def test_the_page_of_a_memory_names_who_was_told_and_who_said_it(viewer):
    memory = MemoryFactory()
    told = tell(memory.pk, 2)
    kinds = {"created": "created it", "reinforced": "confirmed it", "contradicted": "contradicted it"}
    said = {}
    for kind in kinds:
        said[kind] = SessionFactory()
        MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind=kind, session=said[kind])
    tell(memory.pk + 1, 1)
    html = html_of(viewer, f"/memories/{memory.pk}")
    part = html.partition('id="sessions"')[2].partition("</section>")[0]
    for session in told:
        assert f'href="/sessions/{session.pk}"' in part
    for kind, words in kinds.items():
        assert (
            f'href="/sessions/{said[kind].pk}">Session {said[kind].pk}</a> <span class="badge badge-{kind}">{words}'
            in part
        )
    assert part.count('href="/sessions/') == 5
    assert 'Sessions that received this memory <span class="quiet number">2</span>' in part


def test_whoever_may_not_see_sessions_is_told_of_none(client, django_user_model):
    memory = MemoryFactory()
    tell(memory.pk, 1)
    somebody = django_user_model.objects.create_user("reader", is_staff=True)
    somebody.user_permissions.add(Permission.objects.get(codename="view_memory"))
    client.force_login(somebody)
    assert 'id="sessions"' not in html_of(client, f"/memories/{memory.pk}")
    assert client.get(f"/memories/{memory.pk}/sessions").status_code == 403
    assert client.get("/memories/preview").status_code == 403


def test_all_of_them_page_by_page_without_a_gap_or_a_repetition(viewer):
    memory = MemoryFactory()
    sessions = tell(memory.pk, receipts.SIZE * 2 + 5)
    assert f'href="/memories/{memory.pk}/sessions"' in html_of(viewer, f"/memories/{memory.pk}")
    seen, address, pages = [], f"/memories/{memory.pk}/sessions", 0
    while address:
        html = html_of(viewer, address)
        seen += re.findall(r'href="/sessions/(\d+)"', html.partition('id="told"')[2])
        older = re.search(r'<a href="(\?before=\d+)"', html)
        address, pages = f"/memories/{memory.pk}/sessions{older[1]}" if older else "", pages + 1
    assert seen == [str(session.pk) for session in reversed(sessions)]
    assert pages == 3
    fragment = html_of(viewer, f"/memories/{memory.pk}/sessions?before={sessions[60].pk}", **HTMX)
    assert fragment.startswith('<section class="panel" id="told"')


def test_of_a_deleted_memory_they_are_still_known(viewer):
    memory = MemoryFactory()
    pk = memory.pk
    (session,) = tell(pk, 1)
    verbs.delete(memory, by="ann")
    html = html_of(viewer, f"/memories/{pk}/sessions")
    assert "There is no such memory" in html
    assert f'href="/sessions/{session.pk}"' in html


def test_the_pages_cost_the_same_with_twice_the_sessions(viewer):
    memory = MemoryFactory()

    def queries(address: str, rows: int) -> int:
        for session in tell(memory.pk, rows):
            MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="reinforced", session=session)
        with CaptureQueriesContext(connection) as captured:
            html_of(viewer, address)
        return len(captured)

    for address in (f"/memories/{memory.pk}", f"/memories/{memory.pk}/sessions"):
        queries(address, 1)
        assert queries(address, 10) == queries(address, 20)


def test_signed_out_the_pages_lead_to_the_sign_in_and_fragments_are_refused(client):
    for address in ("/memories/1/sessions", "/memories/preview"):
        assert client.get(address).status_code == 302
        assert client.get(address, headers=HTMX).status_code == 403


def test_nothing_but_looking_is_answered(viewer):
    for address in ("/memories/1/sessions", "/memories/preview"):
        assert viewer.post(address).status_code == 405


# -- the preview -------------------------------------------------------------------------------------------------


def memory_of(observation: str, confidence: float, **given) -> Memory:
    return MemoryFactory(observation=observation, confidence=confidence, **given)


def side(html: str, which: str) -> str:
    return html.partition(f'id="preview-{which}"')[2].partition("</section>")[0]


def marks(html: str, which: str) -> list[tuple[str, str]]:
    return re.findall(r'<li class="side-(\w+)">.*?<a class="text"[^>]*>([^<]*)</a>', side(html, which))


def test_now_stands_beside_what_the_last_session_got(viewer):
    stays = memory_of("Stays", 0.8)
    goes = memory_of("Goes", 0.9)
    rises = memory_of("Rises", 0.5)
    memory_of("Falls behind", 0.7)
    session = SessionFactory()
    inject(session, at=NOW)
    verbs.deactivate(goes, by="ann")
    verbs.set_confidence(rises, 1.0, by="ann")
    memory_of("Comes", 0.95)
    html = html_of(viewer, "/memories/preview")
    assert marks(html, "now") == [("moved", "Rises"), ("new", "Comes"), ("same", "Stays"), ("same", "Falls behind")]
    assert marks(html, "then") == [("gone", "Goes"), ("moved", "Rises"), ("same", "Stays"), ("same", "Falls behind")]
    shown, _, folded = side(html, "now").partition("<summary>2 unchanged</summary>")
    assert "Comes" in shown
    assert "Stays" not in shown
    assert "Stays" in folded
    assert "inactive: deactivated by a person" in side(html, "then")
    assert "was number 4" in side(html, "now")
    assert "more confident by 0.5" in side(html, "now")
    for number, name in ((1, "new"), (1, "gone"), (1, "moved"), (2, "unchanged")):
        assert f'<strong class="number">{number}</strong> {name}' in html
    assert f'href="/sessions/{session.pk}"' in html
    assert stays.observation in html


def test_it_is_what_the_next_session_is_told_to_the_letter(viewer):
    for number in range(30):
        memory_of(f"Fact {number} about it", 0.4 + number / 100)
    memory_of("Old and due to fall", 0.7, updated_at=NOW - timedelta(days=45))
    html = html_of(viewer, "/memories/preview?budget=200")
    text = re.search(r'<pre tabindex="0">(.*?)</pre>', html, re.S)[1]
    assert text.replace("&#x27;", "'") == build(budget=200, at=timezone.now()).text
    assert "of 200 tokens" in html


def test_with_a_task_it_is_what_a_session_with_that_task_is_told(viewer, settings):
    settings.CLAUDEOPS_MEMORY_BUDGET = 120
    for number in range(9):
        memory_of(f"The library scan {number} is heavy", 0.95)
    memory_of("The wg0 tunnel drops when the router restarts", 0.6, service="vpn")
    task = "ALERT: tunnel wg0 is down"
    html = html_of(viewer, f"/memories/preview?{urlencode({'task': task})}")
    assert marks(html, "now")[0][1].startswith("The wg0 tunnel")
    session = SessionFactory(task=task)
    told = inject(session, at=timezone.now())
    again = html_of(viewer, f"/memories/preview?session={session.pk}")  # with the task of that session
    assert {mark for mark, _ in marks(again, "now")} == {"same"}
    for page in (html, again):
        text = re.search(r'<pre tabindex="0">(.*?)</pre>', page, re.S)[1]
        assert text.replace("&#x27;", "'") == told.text


def test_it_writes_nothing(viewer):
    memory_of("Old and due to fall", 0.7, updated_at=NOW - timedelta(days=60))
    inject(SessionFactory(), at=NOW - timedelta(days=1))
    before = [
        list(model.objects.order_by("pk").values()) for model in (Memory, MemoryChange, InjectionReceipt, Injected)
    ]
    html = html_of(viewer, "/memories/preview")
    assert "0.40" in side(html, "now") or "0.30" in side(html, "now")
    after = [
        list(model.objects.order_by("pk").values()) for model in (Memory, MemoryChange, InjectionReceipt, Injected)
    ]
    assert after == before


def test_tier_project_and_session_choose_what_is_compared(viewer, settings):
    settings.CLAUDEOPS_TIER2_MEMORY_BUDGET = 777
    media = ProjectFactory(slug="media")
    memory_of("Everywhere", 0.9)
    memory_of("Only media", 0.8, project=media)
    first = SessionFactory(tier=1, queued_at=NOW - timedelta(hours=3))
    second = SessionFactory(tier=2, project=media, queued_at=NOW - timedelta(hours=2))
    third = SessionFactory(tier=1, queued_at=NOW - timedelta(hours=1))
    for session in (first, second, third):
        inject(session, at=NOW)

    def asked(query: str) -> tuple[str, list[str]]:
        html = html_of(viewer, f"/memories/preview{query}")
        beside = re.search(r"What session (\d+) got", html)
        return (beside[1] if beside else ""), [text for _, text in marks(html, "now")]

    assert asked("") == (str(third.pk), ["Everywhere"])
    assert asked("?tier=2") == (str(second.pk), ["Everywhere", "Only media"])
    assert "of 777 tokens" in side(html_of(viewer, "/memories/preview?tier=2"), "now")
    assert asked(f"?session={first.pk}") == (str(first.pk), ["Everywhere"])
    assert asked(f"?session={second.pk}") == (str(second.pk), ["Everywhere", "Only media"])
    assert asked("?tier=1&project=media") == ("", ["Everywhere", "Only media"])
    assert asked("?tier=2&project=") == ("", ["Everywhere"])


def test_without_any_session_it_shows_what_would_be_told_alone(viewer):
    memory_of("Known", 0.9)
    html = html_of(viewer, "/memories/preview")
    assert marks(html, "now") == [("same", "Known")]
    assert "there is nothing to compare with" in html
    Memory.objects.all().delete()
    assert "No memory would be injected: none is active" in html_of(viewer, "/memories/preview")


@pytest.mark.parametrize(
    "query", ["tier=9", "tier=x", "budget=-1", "budget=x", "project=nowhere", "session=4711", "session=0"]
)
def test_what_cannot_be_read_is_said_beside_it(viewer, query):
    memory_of("Known", 0.9)
    response = viewer.get(f"/memories/preview?{query}")
    assert response.status_code == 422
    html = response.content.decode()
    assert "errorlist" in html
    assert "Known" not in html


def test_the_fragment_is_the_preview_alone_and_going_back_is_the_whole_page(viewer):
    memory_of("Known", 0.9)
    assert html_of(viewer, "/memories/preview", **HTMX).startswith('<div id="preview">')
    back = HTMX | {"HX-History-Restore-Request": "true"}
    assert "<html" in html_of(viewer, "/memories/preview", **back)


def test_the_list_and_a_receipt_lead_to_it(viewer):
    session = SessionFactory()
    MemoryFactory()
    inject(session, at=NOW)
    assert 'href="/memories/preview"' in html_of(viewer, "/memories")
    assert f'href="/memories/preview?session={session.pk}"' in html_of(viewer, f"/sessions/{session.pk}?tab=injected")


def test_the_preview_costs_the_same_with_twice_the_memories(viewer):
    def queries() -> int:
        for number in range(10):
            memory_of(f"More {number}", 0.5)
        gone = memory_of("Goes", 0.9)
        inject(SessionFactory(), at=timezone.now())
        verbs.delete(gone, by="ann")
        with CaptureQueriesContext(connection) as captured:
            html = html_of(viewer, "/memories/preview")
        assert "deleted" in side(html, "then")
        return len(captured)

    queries()
    assert queries() == queries()
