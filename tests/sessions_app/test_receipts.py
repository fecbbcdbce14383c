"""What sessions were told, from the side of a memory: the rows, their filling from old receipts, the pages."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.injection.ops import build
from memories.lifecycle import verbs
from memories.models import Memory, MemoryChange
from sessions_app import receipts
from sessions_app.models import Injected, InjectionReceipt, Session, Status
from sessions_app.runner.launch import inject
from tests.sessions_app.people import HTMX, person
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory

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


def told_counts(*memories: Memory) -> list[int]:
    found = dict(Memory.objects.values_list("pk", "told_count"))
    return [found[memory.pk] for memory in memories]


def test_a_memory_counts_the_sessions_that_were_told_it_and_an_attempt_again_counts_once():
    first, second = MemoryFactory(), MemoryFactory()
    session = SessionFactory()
    inject(session, at=NOW)
    inject(session, at=NOW + timedelta(minutes=1))
    inject(SessionFactory(), at=NOW + timedelta(minutes=2))
    assert told_counts(first, second) == [2, 2]
    assert Memory.objects.get(pk=first.pk).last_told_at == NOW + timedelta(minutes=2)


def test_what_a_later_attempt_leaves_out_is_not_counted():
    first, second = MemoryFactory(), MemoryFactory()
    session = SessionFactory()
    inject(session, at=NOW)
    verbs.deactivate(first, by="ann")
    inject(session, at=NOW)
    assert told_counts(first, second) == [0, 1]


def test_the_count_is_written_with_the_receipt_or_not_at_all(monkeypatch):
    memory = MemoryFactory()

    def break_off(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the worker died")

    with monkeypatch.context() as patched:
        patched.setattr(Injected.objects, "bulk_create", break_off)
        with pytest.raises(RuntimeError):
            inject(SessionFactory(), at=NOW)
    assert told_counts(memory) == [0]
    assert not InjectionReceipt.objects.exists()


def test_an_earlier_time_does_not_replace_a_later_one():
    memory = MemoryFactory()
    inject(SessionFactory(), at=NOW)
    inject(SessionFactory(), at=NOW - timedelta(days=1))
    assert Memory.objects.get(pk=memory.pk).last_told_at == NOW


def test_they_outlive_the_memory_and_go_with_the_session():
    memory, session = MemoryFactory(), SessionFactory()
    inject(session, at=NOW)
    pk = memory.pk
    verbs.delete(memory, by="ann")
    assert told_by(session) == {pk}
    session.delete()
    assert not Injected.objects.exists()


def test_the_sessions_of_a_memory_are_found_by_an_index():
    tell(7, 3)
    rows = Injected.objects.filter(memory_id=7, session__lt=10**9).order_by("-session").values_list("session")[:50]
    if connection.vendor == "sqlite":
        plan = rows.explain()
        assert "COVERING INDEX" in plan
        assert "SCAN" not in plan
        assert "TEMP B-TREE" not in plan


# -- the pages ---------------------------------------------------------------------------------------------------


def panel_of(client: Client, memory: Memory) -> str:
    return html_of(client, f"/memories/{memory.pk}").partition('id="sessions"')[2].partition("</section>")[0]


def test_the_page_of_a_memory_shows_the_last_sessions_that_were_told_it_with_their_outcomes(viewer):
    memory = MemoryFactory()
    told = tell(memory.pk, 23)
    Session.objects.filter(pk=told[-1].pk).update(status=Status.FAILED, status_reason="Jellyfin <b>did</b> not answer")
    Session.objects.filter(pk=told[-2].pk).update(status=Status.ESCALATED)
    Session.objects.filter(pk=told[-3].pk).update(summary="waited 74 s, then healthy")
    tell(memory.pk + 1, 1)
    part = panel_of(viewer, memory)
    assert "20 runs: 18 completed, 1 failed, 1 escalated" in part
    assert "21 completed, 1 failed, 1 escalated" in part
    assert f'<a href="/memories/{memory.pk}/sessions">All 23</a>' in part
    rows = re.findall(r'<a class="clip" href="/sessions/(\d+)">([^<]+)</a>', part)
    assert rows[:3] == [
        (str(told[-1].pk), "Jellyfin &lt;b&gt;did&lt;/b&gt; not answer"),
        (str(told[-2].pk), "escalated"),
        (str(told[-3].pk), "waited 74 s, then healthy"),
    ]
    assert len(rows) == 4


def test_how_many_were_told_it_stands_in_the_band_and_leads_to_the_list(viewer):
    memory = MemoryFactory()
    band = html_of(viewer, f"/memories/{memory.pk}").partition("band-panel")[2].partition("</section>")[0]
    assert re.search(r"<dt>Told</dt>\s*<dd>\s*no session", band)
    tell(memory.pk, 1)
    band = html_of(viewer, f"/memories/{memory.pk}").partition("band-panel")[2].partition("</section>")[0]
    assert re.search(rf'<a href="/memories/{memory.pk}/sessions">1 session</a>\s*<small>last just now</small>', band)


def test_outcomes_are_those_of_the_last_sessions_when_there_are_very_many(viewer, monkeypatch):
    monkeypatch.setattr(receipts, "COUNTED", 3)
    memory = MemoryFactory()
    tell(memory.pk, 5)
    assert "Of the last 3: 3 completed" in panel_of(viewer, memory)


def test_the_panel_costs_the_same_with_four_and_with_twenty_sessions(viewer):
    def queries(sessions: int) -> int:
        memory = MemoryFactory()
        tell(memory.pk, sessions)
        with CaptureQueriesContext(connection) as captured:
            html_of(viewer, f"/memories/{memory.pk}")
        return len(captured)

    queries(1)
    assert queries(4) == queries(20)


def test_whoever_may_not_see_sessions_is_told_of_none(client, django_user_model):
    memory = MemoryFactory()
    tell(memory.pk, 1)
    somebody = django_user_model.objects.create_user("reader", is_staff=True)
    somebody.user_permissions.add(Permission.objects.get(codename="view_memory"))
    client.force_login(somebody)
    assert 'id="sessions"' not in html_of(client, f"/memories/{memory.pk}")
    assert client.get(f"/memories/{memory.pk}/sessions").status_code == 403
    assert client.get("/ask").status_code == 403


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
    assert fragment.lstrip().startswith('<section class="panel" id="told"')


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
    for address in ("/memories/1/sessions", "/ask"):
        assert client.get(address).status_code == 302
        assert client.get(address, headers=HTMX).status_code == 403


def test_nothing_but_looking_is_answered(viewer):
    for address in ("/memories/1/sessions", "/ask"):
        assert viewer.post(address).status_code == 405


# -- what the next session is told, beside that of an earlier one -----------------------------------------------


def memory_of(observation: str, confidence: float, **given) -> Memory:
    return MemoryFactory(observation=observation, confidence=confidence, **given)


def asked(viewer, **query) -> str:
    return html_of(viewer, f"/ask?{urlencode({'agent': '', **query})}")


def part(html: str, which: str) -> str:
    return html.partition(f'id="{which}"')[2].partition("</section>")[0]


def differences(html: str) -> list[tuple[str, str]]:
    rows = re.findall(r'<li class="is-(\w+)">.*?<a [^>]*>(.*?)</a>', part(html, "ask-differs"), re.S)
    return [(mark, re.sub(r"<[^>]+>", "", text)) for mark, text in rows]


def block(html: str) -> str:
    """The text of the operational block, as it is sent."""
    found = re.search(r'id="ask-system"[^>]*>(.*?)</pre>', html, re.S)
    return unescape(found[1]) if found else ""


def told(html: str) -> list[str]:
    return re.findall(r"^- \[\w+\] (.*) \(confidence", block(html), re.M)


def test_only_what_differs_from_the_last_session_is_shown(viewer):
    memory_of("Stays", 0.8)
    goes = memory_of("Goes", 0.9)
    rises = memory_of("Rises", 0.5)
    worded = memory_of("Waits 25 s", 0.7)
    session = SessionFactory()
    inject(session, at=NOW)
    verbs.deactivate(goes, by="ann")
    verbs.set_confidence(rises, 1.0, by="ann")
    verbs.edit(worded, by="ann", observation="Waits 40 s")
    memory_of("Comes", 0.95)
    html = asked(viewer, view="new")
    assert differences(html) == [
        ("gone", "[jellyfin, timing, 0.5] Rises"),
        ("new", "[jellyfin, timing, 1.0] Rises"),
        ("new", "[jellyfin, timing, 0.95] Comes"),
        ("gone", "[jellyfin, timing, 0.7] Waits 25 s"),
        ("new", "[jellyfin, timing, 0.7] Waits 40 s"),
        ("gone", "[jellyfin, timing, 0.9] Goes"),
    ]
    assert "<del>25</del>" in part(html, "ask-differs")
    assert "inactive: deactivated by a person" in part(html, "ask-differs")
    assert "1 come, 1 go, 2 change, 1 stay" in html
    assert f'href="/sessions/{session.pk}"' in html
    assert told(asked(viewer, view="sent")) == ["Rises", "Comes", "Stays", "Waits 40 s"]
    new = re.findall(r'<li class="is-new"><span class="ask-text">(.*?)</span>', asked(viewer))
    assert new == ["Rises", "Comes", "Waits 40 s"]


def test_it_is_what_the_next_session_is_told_to_the_letter(viewer):
    for number in range(30):
        memory_of(f"Fact {number} about it", 0.4 + number / 100)
    memory_of("Old and due to fall", 0.7, updated_at=NOW - timedelta(days=45))
    html = asked(viewer, budget=200, view="sent")
    injection = build(budget=200, at=timezone.now())
    assert block(html) == injection.text
    shown = re.findall(r'<span class="ask-text">(Fact .*?|Old .*?)</span>', asked(viewer, budget=200))
    assert shown == [entry["observation"] for entry in injection.included]
    assert "of 200" in html


def test_with_a_task_it_is_what_a_session_with_that_task_is_told(viewer, settings):
    settings.CLAUDEOPS_MEMORY_BUDGET = 120
    for number in range(9):
        memory_of(f"The library scan {number} is heavy", 0.95)
    memory_of("The wg0 tunnel drops when the router restarts", 0.6, service="vpn")
    task = "ALERT: tunnel wg0 is down"
    html = asked(viewer, task=task, view="sent")
    assert "New since session" not in html  # there is no session yet
    lines = re.findall(r'<span class="ask-text">(.*?)</span><a[^>]*>(.*?)</a>', asked(viewer, task=task))
    assert [text[:14] for text, why in lines if why.startswith("relevant to the task")] == ["The wg0 tunnel"]
    session = SessionFactory(task=task)
    given = inject(session, at=timezone.now())
    again = html_of(viewer, f"/ask?session={session.pk}&view=new")  # with the task of that session
    assert differences(again) == [] and "told the same" in again
    assert block(html) == block(html_of(viewer, f"/ask?session={session.pk}&view=sent")) == given.ops.text


def test_it_writes_nothing(viewer):
    memory_of("Old and due to fall", 0.7, updated_at=NOW - timedelta(days=60))
    inject(SessionFactory(), at=NOW - timedelta(days=1))
    before = [
        list(model.objects.order_by("pk").values()) for model in (Memory, MemoryChange, InjectionReceipt, Injected)
    ]
    html = asked(viewer, view="sent")
    assert "0.4)" in block(html) or "0.3)" in block(html)
    after = [
        list(model.objects.order_by("pk").values()) for model in (Memory, MemoryChange, InjectionReceipt, Injected)
    ]
    assert after == before


def test_tier_project_and_session_choose_what_is_compared(viewer):
    media = ProjectFactory(slug="media")
    memory_of("Everywhere", 0.9)
    memory_of("Only media", 0.8, project=media)
    first = SessionFactory(tier=1, queued_at=NOW - timedelta(hours=3))
    second = SessionFactory(tier=2, project=media, queued_at=NOW - timedelta(hours=2))
    third = SessionFactory(tier=1, queued_at=NOW - timedelta(hours=1))
    for session in (first, second, third):
        inject(session, at=NOW)

    def beside(**query: object) -> tuple[str, list[str]]:
        html = asked(viewer, view="sent", **query)
        found = re.search(r"New since session (\d+)", html)
        return (found[1] if found else ""), told(html)

    assert beside() == (str(third.pk), ["Everywhere"])
    assert beside(tier=2) == (str(second.pk), ["Everywhere"])
    assert beside(session=first.pk) == (str(first.pk), ["Everywhere"])
    assert beside(tier=1, project="media") == ("", ["Everywhere", "Only media"])
    assert beside(tier=2, project="") == ("", ["Everywhere"])
    html = html_of(viewer, f"/ask?session={second.pk}&view=sent")  # as that session, now
    assert told(html) == ["Everywhere", "Only media"]
    assert '<option value="2" selected>' in html


def test_an_agent_brings_its_tier_budget_and_project_and_its_own_last_session(viewer):
    media = ProjectFactory(slug="media")
    memory_of("Only media", 0.8, project=media)
    watch = AgentFactory(slug="watch", tier=2, project=media, memory_budget=777)
    mine = SessionFactory(agent=watch, tier=2, project=media, queued_at=NOW - timedelta(hours=2), status="failed")
    good = SessionFactory(agent=watch, tier=2, project=media, queued_at=NOW - timedelta(hours=3))
    for session in (mine, good, SessionFactory(tier=2, project=media)):
        inject(session, at=NOW)
    html = html_of(viewer, "/ask?agent=watch&task=&project=&tier=&view=new")
    assert f">session {mine.pk}</a> of watch" in html
    assert f"session={good.pk}&amp;view=new" in html  # the last good one
    assert "Operational memories" in html and "of 777" in html
    assert told(html_of(viewer, "/ask?agent=watch&view=sent")) == ["Only media"]
    assert '<option value="2" selected>' in html


def test_an_agent_that_is_chosen_in_the_form_sets_project_and_tier(viewer):
    media, shop = ProjectFactory(slug="media"), ProjectFactory(slug="shop")
    AgentFactory(slug="watch", tier=3, project=media)
    keeper = AgentFactory(slug="keeper", tier=2, project=shop)
    AgentFactory(slug="rover", tier=1, project=None)
    inject(SessionFactory(agent=keeper, tier=3, project=media), at=NOW)  # not with the project and tier of its agent

    def fields(html: str) -> dict[str, str]:
        form = html.partition('aria-label="Whom the prompt is for"')[2].partition("</form>")[0]
        found = dict(re.findall(r'<input[^>]* name="(\w+)"(?:[^>]*? value="([^"]*)")?', form))
        for name, options in re.findall(r'<select name="(\w+)".*?>(.*?)</select>', form, re.DOTALL):
            chosen = re.search(r'value="([^"]*)" selected', options)
            found[name] = chosen[1] if chosen else ""
        return found

    def change(shown: dict[str, str], **chosen: str) -> dict[str, str]:
        return fields(viewer.get("/ask", shown | chosen).content.decode())

    def of(shown: dict[str, str]) -> tuple[str, str]:
        return shown["project"], shown["tier"]

    shown = change({}, agent="watch")
    assert of(shown) == ("media", "3")
    shown = change(shown, agent="keeper")
    assert of(shown) == ("shop", "2")
    shown = change(shown, project="media", tier="1")  # what a person chooses for the agent stays
    assert of(shown) == ("media", "1")
    assert of(change(shown, task="Look")) == ("media", "1")
    assert of(change(shown, agent="watch", project="shop")) == ("media", "3")
    assert of(change(change(shown, agent="watch", budget="-1"), budget="")) == ("media", "3")  # it was refused first
    shown = change(shown, agent="rover")
    assert of(shown) == ("", "1")
    assert change(change(shown, agent="watch"), agent="")["project"] == ""
    assert of(change({}, agent="keeper")) == ("shop", "2")
    assert of(change({}, agent="keeper", project="media", tier="3")) == ("media", "3")  # an address says so


def test_what_is_left_out_is_counted_by_reason_and_leads_to_its_list(viewer):
    memory_of("Known", 0.9)
    memory_of("Held back", 0.9, verdict="hold")
    for number in range(2):
        memory_of(f"Off {number}", 0.9, active=False)
    html = part(asked(viewer), "not-told-title")
    assert re.findall(r'\?(status=\w+)">(\d+)</a>', html) == [("status=held", "1"), ("status=inactive", "2")]
    assert "Held back" not in html  # the gate held its text


def test_what_a_person_can_do_stands_beside_what_is_not_told(viewer):
    operator = Client()
    operator.force_login(person("operator"))
    waits = memory_of("Unsure", 0.9, provisional="credentials")
    off = memory_of("Off", 0.9, active=False)
    low = memory_of("Low", 0.1)
    assert '<form method="post"' not in part(asked(viewer), "not-told-title")  # who may only look
    html = part(asked(operator), "not-told-title")
    assert f'href="/memories/{waits.pk}" aria-label="Decide on memory {waits.pk}"' in html
    actions = re.findall(r'action="([^"]+)".*?name="seen" value="(\d+)">', html, re.S)
    assert {address for address, _ in actions} == {f"/memories/{off.pk}/activate", f"/memories/{low.pk}/confirm"}
    for address, seen in actions:
        assert operator.post(address, {"seen": seen}).status_code == 302
    assert set(told(asked(operator, view="sent"))) == {
        "Off"
    }  # confirmed once, the other one is surer, and not yet told


def test_without_any_session_it_shows_what_would_be_told_alone(viewer):
    memory_of("Known", 0.9)
    html = asked(viewer)
    assert "Known" in html and "New since session" not in html
    Memory.objects.all().delete()
    assert "Operational memories" not in asked(viewer)


@pytest.mark.parametrize(
    "query", ["tier=9", "tier=x", "budget=-1", "budget=x", "project=nowhere", "session=4711", "session=0"]
)
def test_what_cannot_be_read_is_said_beside_it(viewer, query):
    memory_of("Known", 0.9)
    response = viewer.get(f"/ask?{query}")
    assert response.status_code == 422
    html = response.content.decode()
    assert "errorlist" in html
    assert "Known" not in html


def test_the_fragment_is_the_answer_alone_and_going_back_is_the_whole_page(viewer):
    memory_of("Known", 0.9)
    assert html_of(viewer, "/ask?agent=", **HTMX).lstrip().startswith('<div id="ask">')
    back = HTMX | {"HX-History-Restore-Request": "true"}
    assert "<html" in html_of(viewer, "/ask?agent=", **back)


def test_the_list_a_receipt_and_the_address_of_before_lead_to_it(viewer):
    session = SessionFactory()
    MemoryFactory()
    inject(session, at=NOW)
    assert 'href="/ask"' in html_of(viewer, "/memories")
    assert f'href="/ask?session={session.pk}&amp;view=new"' in html_of(viewer, f"/sessions/{session.pk}?tab=injected")
    assert viewer.get("/memories/preview?agent=watch").headers["Location"] == "/ask?agent=watch"


def test_an_answer_costs_the_same_with_twice_the_memories(viewer):
    def queries() -> int:
        for number in range(10):
            memory_of(f"More {number}", 0.5)
        gone = memory_of("Goes", 0.9)
        inject(SessionFactory(), at=timezone.now())
        verbs.delete(gone, by="ann")
        with CaptureQueriesContext(connection) as captured:
            html = asked(viewer, view="new")
        assert "deleted" in part(html, "ask-differs")
        return len(captured)

    queries()
    assert queries() == queries()
