"""`/sessions/{id}`: what the page of one session shows, what is new on it, stopping it, running it again."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.models import MemoryChange
from sessions_app.models import HookReceipt, InjectionReceipt, LogEntry, ServiceCheck, Session, Status, Trigger
from tests.sessions_app.people import HTMX, person
from tests.support.factories import AgentFactory, CooldownActionFactory, EventFactory, MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer"))
    return client


@pytest.fixture
def operators(client):
    client.force_login(person("operator"))
    return client


def url(session: Session, more: str = "") -> str:
    return f"/sessions/{session.pk}{more}"


def html_of(client, address: str, **headers: str) -> str:
    response = client.get(address, headers=headers)
    assert response.status_code == 200, address
    return response.content.decode()


def live(html: str) -> str | None:
    found = re.search(r'id="session-poll" hidden hx-get="([^"]+)"', html)
    return found and found[1]


def said(response) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def full(session: Session, rows: int = 3) -> Session:
    """A session with everything that can hang on one."""
    for number in range(rows):
        EventFactory(session=session, message=f"Event {number}")
        CooldownActionFactory(session=session)
        ServiceCheck.objects.create(session=session, service=f"service-{number}", status="ok", healthy=True)
        memory = MemoryFactory(session=session)
        MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="created", session=session)
        SessionFactory(parent=session, tier=2)
        hook_receipt(session, f"a{number}")
        LogEntry.objects.create(
            session=session, seq=number + 1, at=timezone.now(), kind="text", text=f"Line {number}", offset=number
        )
    return session


def receipt(session: Session, rows: int = 2) -> InjectionReceipt:
    entry = {"id": 1, "uuid": "x", "service": None, "category": "timing", "confidence": 0.9, "observation": "Told so"}
    return InjectionReceipt.objects.create(
        session=session,
        text="\n".join(["## Operational Memory", "", "### general", *["- [timing] Told so (confidence: 0.9)"] * rows]),
        sha256="ab" * 32,
        budget=2000,
        tokens=412,
        included=[entry | {"id": number + 1, "reason": ""} for number in range(rows)],
        left_out=[entry | {"observation": "Left out so", "reason": "the budget of 2,000 tokens is full"}],
        counts={"eligible": 18, "included": rows, "over_budget": 16, "held": 0},
    )


def hook_receipt(session: Session, part: str = "a1", **fields) -> HookReceipt:
    given = {"agent": "data_engineer", "tokens": 312, "text": "Told so.", "sha256": "cd" * 32, **fields}
    cli = f"cli-{session.pk}"
    return HookReceipt.objects.create(session=session, cli_session_id=cli, event="SubagentStart", part=part, **given)


# -- who ---------------------------------------------------------------------------------------------------------


def test_signed_out_the_page_leads_to_the_sign_in_and_the_fragment_is_refused(client):
    session = SessionFactory(status=Status.RUNNING)
    assert client.get(url(session)).status_code == 302
    assert client.get(url(session, "/live"), headers=HTMX).status_code == 403
    for more in ("/stop", "/again"):
        assert client.post(url(session, more)).status_code == 302
        assert client.post(url(session, more), headers=HTMX).status_code == 403
    session.refresh_from_db()
    assert session.stop_requested_at is None
    assert Session.objects.count() == 1


def test_a_viewer_sees_the_page_and_can_neither_stop_nor_run_again(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    html = html_of(viewer, url(session))
    assert "stop-button" not in html
    assert "again-button" not in html
    for more in ("/stop", "/again"):
        assert viewer.post(url(session, more)).status_code == 403
        assert viewer.post(url(session, more), headers=HTMX).status_code == 403
        assert viewer.get(url(session, more)).status_code == 405
    session.refresh_from_db()
    assert session.stop_requested_at is None
    assert Session.objects.count() == 1


@pytest.mark.parametrize("pk", [1, 2**63, 10**30])
def test_a_session_that_is_not_there_is_not_found(viewer, pk):
    assert viewer.get(f"/sessions/{pk}").status_code == 404
    assert viewer.get(f"/sessions/{pk}/live").status_code == 404
    assert viewer.get(f"/sessions/{pk}/log").status_code == 404


# -- what it shows -----------------------------------------------------------------------------------------------


def figure(html: str, label: str) -> str:
    """The value of a figure and what stands beside it, as they are read."""
    found = re.search(rf"<dt>{label}</dt>\s+<dd>(.*?)</dd>", html, re.DOTALL)
    assert found, label
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


def titles(html: str) -> tuple[str, str]:
    """The heading, and the sentence below it with the state before it."""
    heading = re.search(r"<h1>(.*?)</h1>", html)[1]
    below = re.search(r'<p class="band-more".*?</p>', html, re.DOTALL)[0]
    return unescape(heading), unescape(" ".join(re.sub(r"<[^>]+>", " ", below).split()))


def test_the_page_shows_status_reason_cost_turns_tokens_and_duration(viewer):
    session = SessionFactory(
        status=Status.TIMED_OUT,
        status_reason="It ran longer than 60 s.",
        cost_usd=Decimal("1.25"),
        num_turns=9,
        duration_ms=61_000,
        usage={"input_tokens": 12_345, "output_tokens": 67, "service_tier_seen": 4},
        stats={"lines": 7},
        error="Killed.",
        prompt="You observe.",
        task="Look at jellyfin.",
    )
    html = html_of(viewer, url(session))
    assert titles(html) == ("It ran longer than 60 s", "timed out")
    assert [figure(html, label) for label in ("Duration", "Turns", "Cost", "Tokens")] == [
        "1 min 1 s",
        "9",
        "$1.25",
        "12,412",
    ]
    assert "<dt>Input</dt>\n        <dd>12,345 tokens</dd>" in html
    assert "service tier seen" in html
    assert '<pre class="error-text" tabindex="0">Killed.</pre>' in html  # the answer's tab, there being nothing learned
    prompt = html_of(viewer, url(session, "?tab=prompt"))
    assert "You observe." in prompt
    assert "Look at jellyfin." in prompt


@pytest.mark.parametrize(
    ("fields", "title", "below"),
    [
        ({"summary": "All 11 services answer."}, "All 11 services answer", "completed"),
        (
            {"summary": "Jellyfin scans. It is no failure.", "status_reason": "1 tool call was denied: Bash."},
            "Jellyfin scans",
            "completed It is no failure. 1 tool call was denied: Bash.",
        ),
        ({"response": "## Found\n\nAll well."}, "Found", "completed"),
        ({}, "watch completed", "completed"),
        (
            {"status": Status.FAILED, "status_reason": "The session reached its limit of turns.", "summary": "Locked."},
            "The session reached its limit of turns",
            "failed It said: Locked.",
        ),
        ({"status": Status.LOST}, "watch lost", "lost"),
        ({"status": Status.RUNNING, "task": "Look at caddy.\nNow."}, "watch: Look at caddy", "running"),
        ({"status": Status.QUEUED}, "watch is queued", "queued Waiting for a worker."),
    ],
)
def test_the_title_is_the_outcome_in_words(viewer, fields, title, below):
    session = SessionFactory(agent=AgentFactory(slug="watch"), **fields)
    heading, sentence = titles(html_of(viewer, url(session)))
    assert heading == title
    assert sentence.startswith(below)


def test_a_title_of_an_agents_words_can_do_no_harm_and_is_cut(viewer):
    session = SessionFactory(summary="<script>alert(1)</script>" + "word " * 200)
    html = html_of(viewer, url(session))
    assert "<script>alert" not in html
    assert len(titles(html)[0]) <= 140


def test_figures_stand_beside_what_was_usual_for_the_agent_before(viewer):
    agent = AgentFactory()
    for duration, turns, cost in ((40_000, 6, "0.02"), (60_000, 8, "0.03"), (50_000, 7, "0.04")):
        SessionFactory(agent=agent, duration_ms=duration, num_turns=turns, cost_usd=Decimal(cost))
    SessionFactory(agent=agent, duration_ms=900_000, num_turns=99, status=Status.FAILED)
    SessionFactory(duration_ms=900_000, num_turns=99)
    session = SessionFactory(agent=agent, duration_ms=252_000, num_turns=20, cost_usd=Decimal("0.142"))
    SessionFactory(agent=agent, duration_ms=1_000, num_turns=1)  # later
    html = html_of(viewer, url(session))
    assert figure(html, "Duration") == "4 min 12 s usually 50 s"
    assert figure(html, "Turns") == "20 usually 7"
    assert figure(html, "Cost") == "$0.142 usually $0.03"


def test_a_running_session_stands_beside_its_limits(viewer):
    agent = AgentFactory(max_turns=20, max_budget_usd=Decimal("0.25"), timeout_seconds=600)
    SessionFactory(agent=agent, duration_ms=48_000, num_turns=7, cost_usd=Decimal("0.021"))
    started = timezone.now() - timedelta(seconds=60)
    session = SessionFactory(
        agent=agent, status=Status.RUNNING, started_at=started, num_turns=5, cost_usd=Decimal("0.025")
    )
    html = html_of(viewer, url(session))
    assert figure(html, "Cost so far") == "$0.025 of $0.25, usually $0.021"
    assert figure(html, "Turns so far") == "5 of 20, usually 7"
    assert re.fullmatch(r"1 min.* of 10 min", figure(html, "Time"))
    assert re.findall(r'class="meter-fill" width="(\d+)"', html) == ["10", "25", "10"]
    assert "usually it ends after 48 s." in titles(html)[1]


def test_a_running_session_says_what_it_does_now(viewer):
    session = SessionFactory(agent=AgentFactory(slug="watch"), status=Status.RUNNING, started_at=timezone.now())
    for seq, text in enumerate(("Looking at <b>caddy</b>.", "[MEMORY:timing] x\nIt waits 90 s.", "Bash: ls"), start=1):
        kind = "tool_use" if text.startswith("Bash") else "text"
        LogEntry.objects.create(session=session, seq=seq, at=timezone.now(), kind=kind, text=text, offset=seq)
    assert titles(html_of(viewer, url(session)))[0] == "watch: It waits 90 s"
    Session.objects.filter(pk=session.pk).update(task="Look at caddy.")
    heading, below = titles(html_of(viewer, url(session)))
    assert heading == "watch: Look at caddy"
    assert below.startswith("running It says “It waits 90 s”. Started by")


def test_at_the_limit_of_turns_it_is_the_limit_that_stands_beside_them(viewer):
    session = SessionFactory(agent__max_turns=20, num_turns=20, status=Status.FAILED)
    assert figure(html_of(viewer, url(session)), "Turns") == "20 of 20"


def test_a_held_session_says_why(viewer):
    session = SessionFactory(status=Status.QUEUED, hold_reason="Agent watch is busy with session 3.")
    assert "Held: Agent watch is busy with session 3." in html_of(viewer, url(session))
    assert "The receipt is written when the session starts." in html_of(viewer, url(session, "?tab=injected"))


def test_the_neighbours_are_those_in_the_list_by_time(viewer):
    now = timezone.now()
    late, early, middle, same = (SessionFactory(queued_at=now - timedelta(hours=hours)) for hours in (1, 3, 2, 2))
    html = html_of(viewer, url(middle))
    assert f'id="neighbour-before" href="{url(early)}"' in html
    assert f'id="neighbour-after" href="{url(same)}"' in html  # queued at the same time: by number
    assert "by the time they were queued" in html
    assert "neighbour-after" not in html_of(viewer, url(late))
    assert "neighbour-before" not in html_of(viewer, url(early))


def test_what_to_do_leads_to_the_limit_and_hands_over(client):
    client.force_login(person("admin"))
    agent = AgentFactory(tier=1)
    session = SessionFactory(agent=agent, status=Status.FAILED, status_reason="The session reached its limit of turns.")
    html = html_of(client, url(session))
    assert "It needed more turns than it has." in html
    assert f'href="/admin/sessions_app/agent/{agent.pk}/change/#id_max_turns"' in html
    response = client.post(url(session, "/hand-over"))
    child = Session.objects.get(parent=session)
    assert response["Location"] == url(child)
    assert (child.tier, child.agent, child.trigger) == (2, agent, Trigger.ESCALATION)
    assert "Hand over to tier 2" not in html_of(client, url(session))
    assert client.post(url(session, "/hand-over"))["Location"] == url(child)
    assert Session.objects.filter(parent=session).count() == 1


def test_a_viewer_reads_what_to_do_and_has_no_button_for_it(viewer):
    session = SessionFactory(status=Status.FAILED, status_reason="The session reached its limit of turns.")
    html = html_of(viewer, url(session))
    assert "It needed more turns than it has." in html
    assert "#id_max_turns" not in html
    assert "Hand over" not in html
    assert viewer.post(url(session, "/hand-over")).status_code == 403


def test_a_good_run_asks_for_nothing(viewer):
    assert "What to do" not in html_of(viewer, url(SessionFactory()))


def test_equal_failures_are_listed_with_their_number(viewer):
    reason = "The API or the CLI reported an error (HTTP 500): request {} failed"
    first, second, third = (SessionFactory(status=Status.FAILED, status_reason=reason.format(n)) for n in (17, 4711, 9))
    SessionFactory(status=Status.FAILED, status_reason="Stopped.")
    SessionFactory(status=Status.FAILED, status_reason=reason.format(1), queued_at=timezone.now() - timedelta(days=40))
    html = html_of(viewer, url(second))
    panel = html[html.index('id="equal"') :]
    assert "2 others within 30 days" in panel
    assert re.findall(r'href="/sessions/(\d+)"', panel)[:2] == [str(third.pk), str(first.pk)]
    assert "2 equal failures within 30 days" in html
    assert 'id="equal"' not in html_of(viewer, url(SessionFactory()))


def test_the_chain_of_escalation_is_a_tree_from_its_first_session_to_its_last(viewer):
    first = SessionFactory(status=Status.ESCALATED, agent=AgentFactory(slug="watch"))
    second = SessionFactory(parent=first, tier=2, escalation={"reason": "postgres is down"}, status=Status.ESCALATED)
    third = SessionFactory(parent=second, tier=3, status=Status.RUNNING)
    stranger = SessionFactory()
    for one in (first, second, third):
        html = html_of(viewer, url(one))
        chain = re.search(r'class="panel chain-tree".*?</nav>', html, re.DOTALL)[0]
        assert re.findall(r'<li class="chain-(\d)">', chain) == ["0", "1", "2"]
        assert re.findall(r"#(\d+) ", chain) == [str(first.pk), str(second.pk), str(third.pk)]
        assert f'<strong aria-current="page">#{one.pk} ' in chain
    assert "postgres is down" in html_of(viewer, url(second))
    assert "chain-tree" not in html_of(viewer, url(stranger))


def test_a_ring_of_parents_ends(viewer):
    first, second = SessionFactory(), SessionFactory()
    Session.objects.filter(pk=first.pk).update(parent=second)
    Session.objects.filter(pk=second.pk).update(parent=first)
    assert "chain-tree" in html_of(viewer, url(first))


def test_the_receipt_tells_what_was_injected_in_which_place_and_what_was_left_out_and_why(viewer):
    session = SessionFactory()
    made = receipt(session)
    made.included[0]["reason"] = "relevant to the task: score 0.91"
    made.save()
    memory = MemoryFactory(pk=2)
    MemoryChange.objects.create(memory=memory, memory_uuid=memory.uuid, kind="reinforced", session=session)
    html = html_of(viewer, url(session, "?tab=injected"))
    for text in (
        "412 of 2,000 tokens",
        "2 of 18 memories fitted",
        "ab" * 32,
        "Told so",
        "Left out so",
        "the budget of 2,000 tokens is full",
        '<strong class="number">16</strong> over budget',
        "## Operational Memory",
    ):
        assert text in html
    rows = re.findall(r"<tr>.*?</tr>", html[html.index('class="table injected"') :], re.DOTALL)[1:]
    said = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]
    assert said == [
        "1 Told so general 0.90 9 task score 0.91",
        "2 Told so general 0.90 9 confidence confirmed",
    ]
    assert re.findall(r"</i>(for the task|by confidence|headings) (\d+)<", html) == [
        ("for the task", "9"),
        ("by confidence", "9"),
        ("headings", "394"),
    ]


def test_what_it_learned_says_how_and_leads_to_the_inbox_and_to_its_line(client):
    client.force_login(person("operator"))
    session = SessionFactory()
    known = MemoryFactory(observation="Restic's check takes 40 min", confidence=0.48)
    held = MemoryFactory(observation="The prune holds the lock", verdict="hold", verdict_reason="changes a schedule")
    for memory, kind, before, evidence in (
        (known, "reinforced", {"confidence": 0.43}, {"text": "Restic's check takes 40 min."}),
        (held, "created", {}, {"channel": "text"}),
    ):
        MemoryChange.objects.create(
            memory=memory,
            memory_uuid=memory.uuid,
            kind=kind,
            session=session,
            before=before,
            after={"confidence": memory.confidence, "observation": memory.observation},
            evidence=evidence,
        )
    text = "I looked.\n[MEMORY:timing:restic] Restic's check takes 40 min."
    LogEntry.objects.create(session=session, seq=41, at=timezone.now(), kind="text", text=text, offset=0)
    html = html_of(client, url(session))  # what was learned comes first
    assert "confirmed, 0.43 to 0.48" in html
    assert f'href="{url(session, "/log")}?line=41#line-41">line 41</a>' in html
    assert "new, held: changes a schedule" in html
    assert f'href="/inbox?view=held&amp;item=held-{held.pk}">Review</a>' in html


def test_the_answer_is_rendered_and_can_do_no_harm(viewer):
    answer = "## Found\n\n**two** <script>alert(1)</script> [x](javascript:alert(1)) ![y](https://t.example/y.png)"
    session = SessionFactory(response=answer, summary="<b>bold</b>", structured={"summary": "</pre><script>"})
    html = html_of(viewer, url(session))
    assert "<h4>Found</h4>" in html
    assert "<strong>two</strong>" in html
    body = html.split("<main")[1].split("</main>")[0]
    assert "<script" not in body
    assert 'javascript:alert(1)"' not in body
    assert "<img" not in body


def test_everything_that_came_of_it_is_there(viewer):
    session = full(SessionFactory(), rows=1)
    html = html_of(viewer, url(session, "?tab=events"))
    for text in ("Event 0", "Remediations", "Service checks", "service-0", "Line 0"):
        assert text in html
    assert MemoryChange.objects.get().memory.observation in html_of(viewer, url(session))


def test_the_tabs_have_counts_and_addresses_and_htmx_gets_them_alone(viewer):
    session = full(SessionFactory(), rows=2)
    receipt(session)
    html = html_of(viewer, url(session, "?tab=events")).partition("<main")[2]
    assert re.findall(r'id="tab-(\w+)" href="([^"]+)"', html)[:2] == [
        ("learned", f"{url(session)}?tab=learned#tabs"),
        ("injected", f"{url(session)}?tab=injected#tabs"),
    ]
    assert re.findall(r">(Learned|Injected|Events|Prompt|Answer)(?: <b>(\d+)</b>)?</a>", html) == [
        ("Learned", "2"),
        ("Injected", "2"),
        ("Events", "2"),
        ("Prompt", ""),
        ("Answer", ""),
    ]
    part = html_of(viewer, url(session, "?tab=events"), **HTMX, **{"HX-Target": "tabs"})
    assert part.lstrip().startswith('<section class="panel" id="tabs"')
    assert "Event 1" in part
    assert "<html" not in part
    back = HTMX | {"HX-Target": "tabs", "HX-History-Restore-Request": "true"}
    assert "<html" in html_of(viewer, url(session, "?tab=events"), **back)


def test_the_injected_tab_says_what_its_subagents_were_told(viewer):
    session = SessionFactory()
    hook_receipt(session, agent="<b>research</b>", included=[{"id": 1}, {"id": 2}])
    html = html_of(viewer, url(session, "?tab=injected"))
    table = html.split('aria-labelledby="injected-hooks"')[1].split("</table>")[0]
    words = re.sub(r"<[^>]+>", " ", table.split("<tbody>")[1]).split()
    assert unescape(" ".join(words)).startswith("<b>research</b> a1 SubagentStart 2 312 cdcdcdcdcdcd")
    assert "injected-hooks" not in html_of(viewer, url(SessionFactory(), "?tab=injected"))


def test_the_number_of_queries_does_not_depend_on_what_hangs_on_it(viewer):
    few, many = full(SessionFactory(), 3), full(SessionFactory(), 6)
    receipt(few, 3), receipt(many, 6)
    tabs = [f"?tab={name}" for name in ("learned", "injected", "events", "prompt", "answer")]
    for more in ("", "/live", "/log", *tabs):
        html_of(viewer, url(few, more))
        with CaptureQueriesContext(connection) as first:
            html_of(viewer, url(few, more))
        with CaptureQueriesContext(connection) as second:
            html_of(viewer, url(many, more))
        assert len(first) == len(second), more


# -- what is new -------------------------------------------------------------------------------------------------


def test_an_ended_session_asks_for_nothing(viewer):
    html = html_of(viewer, url(SessionFactory()))
    assert live(html) is None
    assert "hx-trigger" not in html.split("<main")[1].split("</main>")[0]


def test_while_nothing_changes_a_poll_brings_nothing(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    response = viewer.get(live(html_of(viewer, url(session))), headers=HTMX)
    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize(
    "change",
    [
        {"status": Status.FAILED},
        {"ingest_offset": 10},
        {"hold_reason": "Waits."},
        {"stop_requested_by": "anna"},
        {"cost_usd": Decimal("0.1")},
    ],
)
def test_what_an_ingest_a_stop_or_an_end_writes_is_news(viewer, change):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    address = live(html_of(viewer, url(session)))
    Session.objects.filter(pk=session.pk).update(**change)
    assert viewer.get(address, headers=HTMX).status_code == 200


def test_a_poll_brings_the_pieces_that_changed_and_the_next_poll(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now(), task="Look.")
    address = live(html_of(viewer, url(session)))
    EventFactory(session=session, message="Jellyfin hangs")
    Session.objects.filter(pk=session.pk).update(ingest_offset=10)
    html = html_of(viewer, f"{address}&tab=events", **HTMX)
    assert '<div id="piece-tabs" hx-swap-oob="true">' in html
    assert "Jellyfin hangs" in html
    assert "piece-rail" not in html
    assert viewer.get(live(html), headers=HTMX).status_code == 204


def test_the_last_calls_of_a_running_session_lead_to_their_lines_and_come_with_the_poll(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    address = live(html_of(viewer, url(session)))
    fields = {"session": session, "at": timezone.now(), "kind": "tool_use", "turn": 1, "offset": 0}
    LogEntry.objects.create(seq=1, text="Bash: <script>alert(1)</script>", **fields)
    Session.objects.filter(pk=session.pk).update(ingest_offset=10)
    html = html_of(viewer, address, **HTMX)
    calls = html.split('<section class="panel" id="calls"')[1].split("</section>")[0]
    assert 'href="?line=1#line-1"' in calls
    assert "&lt;script&gt;alert(1)" in calls
    assert "<script" not in calls
    Session.objects.filter(pk=session.pk).update(status=Status.COMPLETED, ended_at=timezone.now())
    assert 'id="calls"' not in html_of(viewer, url(session))


def test_the_log_stands_above_the_timeline_while_the_session_runs(viewer):
    for status, parts in ((Status.RUNNING, ["log", "timeline"]), (Status.COMPLETED, ["timeline", "log"])):
        html = html_of(viewer, url(SessionFactory(status=status, started_at=timezone.now())))
        assert re.findall(r'<section class="panel[^"]*" id="(log|timeline)"', html) == parts


def test_a_child_that_moves_is_news_for_its_open_parent(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    child = SessionFactory(parent=session, status=Status.QUEUED)
    address = live(html_of(viewer, url(session)))
    Session.objects.filter(pk=child.pk).update(status=Status.RUNNING)
    assert "piece-rail" in html_of(viewer, address, **HTMX)


def test_the_end_brings_the_answer_and_no_further_poll(viewer):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    address = live(html_of(viewer, url(session)))
    Session.objects.filter(pk=session.pk).update(
        status=Status.COMPLETED, response="**All well.**", ended_at=timezone.now()
    )
    html = html_of(viewer, address, **HTMX)
    assert "<strong>All well.</strong>" in html
    assert live(html) is None
    assert "hx-trigger" not in html


# -- stop, run again ---------------------------------------------------------------------------------------------


def test_an_operator_stops_a_running_session(operators):
    session = SessionFactory(status=Status.RUNNING, started_at=timezone.now())
    other = SessionFactory(status=Status.RUNNING)
    response = operators.post(url(session, "/stop"))
    assert (response.status_code, response["Location"]) == (302, url(session))
    assert said(response) == f"Session {session.pk} is stopping; it ends within seconds."
    session.refresh_from_db()
    other.refresh_from_db()
    assert session.stop_requested_by == "one-operator"
    assert other.stop_requested_at is None
    html = html_of(operators, url(session))
    assert "Stop requested by one-operator" in html
    assert "stop-button" not in html


def test_an_operator_stops_a_queued_session_at_once(operators):
    session = SessionFactory(status=Status.QUEUED)
    operators.post(url(session, "/stop"))
    session.refresh_from_db()
    assert session.status == Status.STOPPED


def test_stopping_what_has_ended_is_said_and_changes_nothing(operators):
    session = SessionFactory()
    response = operators.post(url(session, "/stop"))
    assert said(response) == f"Session {session.pk} has already ended (completed)."
    session.refresh_from_db()
    assert session.status == Status.COMPLETED


def test_run_again_asks_for_a_session_like_this_one_and_leads_to_it(operators):
    session = SessionFactory(agent__tier=2, tier=2, task="Look at jellyfin.", dry_run=True, model="sonnet")
    response = operators.post(url(session, "/again"))
    made = Session.objects.exclude(pk=session.pk).get()
    assert response["Location"] == url(made)
    assert (made.agent, made.tier, made.task, made.dry_run) == (session.agent, 2, "Look at jellyfin.", True)
    assert (made.trigger, made.requested_by, made.model) == (Trigger.MANUAL, "one-operator", "sonnet")
    assert f"Session {made.pk}</a> is queued" in said(response)


def test_what_cannot_be_run_again_is_refused_in_words(operators, settings):
    session = SessionFactory(tier=3)
    settings.CLAUDEOPS_MAX_TIER = 1
    response = operators.post(url(session, "/again"))
    assert response["Location"] == url(session)
    assert "is not run again: Tier 3 is above the highest allowed tier, 1." in said(response)
    assert Session.objects.count() == 1


def test_an_escalation_is_not_run_again_above_its_agents_tier(operators):
    session = SessionFactory(agent__tier=1, agent__slug="watch", tier=2)
    response = operators.post(url(session, "/again"))
    assert "is not run again: Tier 2 is above the tier of the agent watch, 1." in said(response)
    assert Session.objects.count() == 1


def test_the_page_says_what_the_session_has_read(viewer):
    reading = {"exposure": "outside", "sources": ["logs: web", "<b>"]}
    session = SessionFactory(ingest_state={"reading": reading})
    shown = r"<dt>Has read</dt>\s+<dd>{}</dd>"
    assert re.search(shown.format(r"outside text \(logs: web, &lt;b&gt;\)"), html_of(viewer, url(session)))
    assert re.search(shown.format("nothing from outside"), html_of(viewer, url(SessionFactory())))


def test_only_a_superuser_is_led_to_the_admin_to_delete_a_session_that_ended(client, operator):
    ended, running = SessionFactory(status=Status.COMPLETED), SessionFactory(status=Status.RUNNING)
    link = f'href="/admin/sessions_app/session/{ended.pk}/delete/"'
    client.force_login(operator)  # a superuser
    assert link in html_of(client, url(ended))
    assert 'id="admin-link"' not in html_of(client, url(running))
    client.force_login(person("operator"))
    assert link not in html_of(client, url(ended))


def test_the_projects_memories_stand_with_the_parts_of_their_score(viewer):
    session = SessionFactory()
    entry = {
        "id": 41,
        "uuid": "x",
        "service": None,
        "category": "pattern",
        "confidence": 0.8,
        "reason": "tags",
        "observation": "Uses <cookies>",
        "taxonomy": "project",
        "score": {"confidence": 0.8, "relevance": 0.25, "matched": ["login", "src/**"], "value": 0.2},
    }
    counts = dict.fromkeys(("no_room", "expired", "unconfirmed", "below_threshold", "inactive", "held"), 0)
    counts |= {"eligible": 3, "included": 1}
    InjectionReceipt.objects.create(
        session=session,
        sha256="0" * 64,
        budget=2000,
        tokens=0,
        included=[entry],
        project={
            "text": "x",
            "tokens": 60,
            "budget": 500,
            "limit": 10,
            "counts": {**counts, "eligible": 3, "included": 1},
        },
    )
    html = html_of(viewer, url(session, "?tab=injected"))
    part = html[html.index("injected-project") :]
    assert "1 of 3, 60 of 500 tokens, at most 10" in part
    assert "Uses &lt;cookies&gt;" in part
    for text in ("0.80", "0.25", "0.20", "login, src/**"):
        assert text in part
    assert "No memories were injected" not in html


def told_knowledge(**fields):
    entry = {
        "id": 41,
        "uuid": "x",
        "service": None,
        "category": "operations",
        "confidence": 0.8,
        "reason": "it matches: score 0.61, 12 days old",
        "observation": "Deploys <slowly>",
        "taxonomy": "knowledge",
        "score": {"value": 0.612, "found": 0.64, "age_days": 12.2, "age_factor": 0.88},
    }
    session = SessionFactory()
    record = {"text": "x", "sha256": "0" * 64, "tokens": 60, "budget": 800, "profile": "deep", "query": "<Deploy>"}
    record |= {"why": "", "trace": {"rewritten": "release"}}
    part = {"included": [entry], "knowledge": record} | fields
    InjectionReceipt.objects.create(session=session, sha256="0" * 64, budget=2000, tokens=0, **part)
    return session


def test_knowledge_stands_with_its_score_and_with_what_was_asked_for(viewer):
    html = html_of(viewer, url(told_knowledge(), "?tab=injected"))
    part = html[html.index("injected-knowledge") :]
    assert "1 memory, 60 of 800 tokens, deep" in part
    for text in ("Deploys &lt;slowly&gt;", "0.61", "found 0.64 × 0.88 for its age", "&lt;Deploy&gt;", "release"):
        assert text in part
    assert "No memories were injected" not in html


def test_an_empty_block_of_knowledge_says_why(viewer):
    record = {"query": "Deploy", "why": "the recall failed: it took longer than 6 s", "tokens": 0, "budget": 800}
    html = html_of(viewer, url(told_knowledge(included=[], knowledge=record), "?tab=injected"))
    assert "No knowledge was injected: the recall failed: it took longer than 6 s." in html


def test_a_session_that_never_started_was_told_nothing_and_has_no_log_that_was_pruned(viewer):
    for status, reason in (
        (Status.FAILED, "Could not be started: claude was not found."),
        (Status.STOPPED, "Stopped by ann before it started."),
        (Status.LOST, "Its host far-away has sent no heartbeat."),
    ):
        now = timezone.now()
        start = now if status == Status.FAILED else None
        never = SessionFactory(status=status, status_reason=reason, started_at=start, ended_at=now)
        ran = SessionFactory(status=status, status_reason=reason, started_at=now, ended_at=now, ingest_offset=90)
        entry = {"id": 1, "service": None, "category": "timing", "confidence": 0.9, "observation": "x", "reason": ""}
        for session in (never, ran):
            InjectionReceipt.objects.create(
                session=session, text="x", sha256="a" * 64, budget=9, tokens=1, included=[entry] * 10
            )
        html, tab = html_of(viewer, url(never)), html_of(viewer, url(never, "?tab=injected"))
        assert "It never started, so it has no log." in html and "pruned" not in html and "End of log" not in html
        assert re.search(r'id="tab-injected"[^>]*>Injected <b>0</b>', " ".join(tab.split())), tab
        assert "Nothing was injected: the session never started." in tab
        html, tab = html_of(viewer, url(ran)), html_of(viewer, url(ran, "?tab=injected"))
        assert "The log entries were pruned." in html and "never started" not in html + tab
        assert re.search(r'id="tab-injected"[^>]*>Injected <b>10</b>', " ".join(tab.split()))
