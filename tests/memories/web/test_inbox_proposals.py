"""Proposals in the inbox: what is shown of one, and what the decisions and their undo do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories import inbox
from memories.curate import proposals
from memories.inbox.proposals import difference
from memories.models import ProposalKind, ProposalState, Tier
from tests.memories.people import HTMX, signed_in
from tests.support.factories import (
    MemoryFactory,
    MemoryFileFactory,
    ProposalEvidenceFactory,
    ProposalFactory,
    SessionFactory,
)

pytestmark = pytest.mark.django_db

TEXT = """# Memory

## Operations

- (2026-11-01) The restic check runs at 05:30
- (2026-11-02) Caddy is started after WireGuard
"""


@pytest.fixture
def file():
    return MemoryFileFactory(text=TEXT, entries=2)


def waiting(file, **fields):
    return ProposalFactory(file=file, tier=fields.pop("tier", Tier.PERSON), **fields)


def pick_of(row, kind="proposals"):
    return inbox.KINDS[kind].item(row.pk)["row"].pick


def decide(client, decision, *picks, **more):
    given = {"decision": f"proposals.{decision}", "pick": list(picks), **more}
    return client.post("/inbox/decide", given, headers=HTMX).content.decode()


def undo_in(html):
    return html.partition('hx-post="/inbox/undo/')[2].partition('"')[0]


def test_a_proposal_is_shown_as_it_would_be_committed_with_its_evidence_and_its_triage(file):
    session = SessionFactory()
    row = waiting(
        file,
        kind=ProposalKind.CHANGE,
        target="The restic check runs at 05:30",
        text="The restic check runs at 06:20 <script>",
        why="Hard rule.",
        expires_at=timezone.now() + timedelta(days=3, minutes=5),
    )
    memory = MemoryFactory(observation="restic check moved to 06:20 <b>", session=session)
    ProposalEvidenceFactory(proposal=row, memory=memory, session=session)
    html = signed_in("operator").get("/inbox").content.decode()
    assert '<span class="side-count">1</span>' in html
    assert "<del>05:30</del>" in html or "<del>05</del>" in html
    assert "&lt;script&gt;" in html
    assert "Caddy is started after WireGuard" in html
    assert f'href="/memories/{memory.pk}"' in html
    assert f'href="/sessions/{session.pk}"' in html
    assert "restic check moved to 06:20 &lt;b&gt;" in html
    assert "Hard rule." in html
    assert "in 3 d" in html


def test_those_of_the_rules_and_the_model_are_listed_apart_and_a_person_may_decide_first(file):
    early = waiting(file, tier=Tier.MODEL, text="Backups go to the cellar server at 02:00")
    client = signed_in("operator", "ann")
    assert sum(inbox.counts().values()) == 0
    assert "Backups go" not in client.get("/inbox").content.decode()
    html = client.get("/inbox?view=proposals").content.decode()
    assert "Waiting for rules or the model" in html
    assert "Backups go" in html
    given = {"decision": "untriaged.approve", "pick": pick_of(early, "untriaged"), "view": "proposals"}
    assert "1 approved." in client.post("/inbox/decide", given, headers=HTMX).content.decode()
    early.refresh_from_db()
    assert (early.state, early.decided_by) == (ProposalState.APPROVED, "ann")


def test_many_are_approved_at_once_and_taken_back_at_once(file):
    rows = [waiting(file) for _ in range(3)]
    client = signed_in("operator", "ann")
    html = decide(client, "approve", *map(pick_of, rows))
    assert "3 approved." in html
    assert "3 proposals wait again." in client.post(f"/inbox/undo/{undo_in(html)}", headers=HTMX).content.decode()
    assert inbox.counts()["proposals"] == 3


def test_an_edited_text_is_approved_as_ones_own(file):
    row = waiting(file, text="The check runs at 6")
    decide(signed_in("operator", "ann"), "approve", pick_of(row), observation="The check runs at 06:20")
    row.refresh_from_db()
    assert (row.state, row.text, row.trust) == (ProposalState.APPROVED, "The check runs at 06:20", "operator")


def test_what_somebody_else_decided_or_edited_meanwhile_is_left_alone(file):
    decided, edited = waiting(file), waiting(file)
    picks = [pick_of(decided), pick_of(edited)]
    proposals.reject(decided.pk, by="bob")
    proposals.edit(edited.pk, "Another text that bob wrote at 07:00", by="bob")
    html = decide(signed_in("operator", "ann"), "approve", *picks)
    assert f"bob rejected proposal {decided.pk} meanwhile" in html
    assert f"bob changed proposal {edited.pk} meanwhile" in html
    assert inbox.counts()["proposals"] == 1


def test_an_undo_does_not_take_back_what_somebody_decided_since(file):
    row = waiting(file)
    client = signed_in("operator", "ann")
    undo = undo_in(decide(client, "approve", pick_of(row)))
    proposals.undo(row.pk, by="bob")
    proposals.reject(row.pk, by="bob")
    assert "meanwhile" in client.post(f"/inbox/undo/{undo}", headers=HTMX).content.decode()
    row.refresh_from_db()
    assert row.state == ProposalState.REJECTED


@pytest.mark.parametrize("token", ["x", "1", "1_", "1_2_3", "9" * 40 + "_1"])
def test_an_undo_that_cannot_be_read_changes_nothing(file, token):
    html = signed_in("operator").post(f"/inbox/undo/proposals/{token}", headers=HTMX).content.decode()
    assert "There is no such decision." in html


def test_a_conflict_shows_both_texts_and_its_keys(file):
    conflict = {
        "base": "The restic check runs at 05:00",
        "theirs": "The restic check runs at 05:30",
        "ours": "The restic check runs after 06:10",
        "line": 4,
    }
    row = waiting(file, kind=ProposalKind.CHANGE, target=conflict["base"], text=conflict["ours"], conflict=conflict)
    html = signed_in("operator").get("/inbox").content.decode()
    for label, key in (("Keep mine", 1), ("Take the promotion", 2), ("Write one of both", 3)):
        assert f"{label} <kbd>{key}</kbd>" in html
    assert "Before both: “The restic check runs at 05:00”" in html
    lines, problem = difference(row, timezone.now().date())
    assert (problem, [line.kind for line in lines if line.kind != "same"]) == ("", ["gone", "new"])


def test_what_cannot_be_committed_says_why(file):
    row = waiting(file, kind=ProposalKind.REMOVE, target="An entry that is gone", text="")
    assert "MEMORY.md has no entry" in difference(row, timezone.now().date())[1]
    assert "It cannot be committed as it is." in signed_in("operator").get("/inbox").content.decode()


def test_viewers_see_proposals_and_decide_nothing(file):
    row = waiting(file)
    client = signed_in("viewer")
    html = client.get("/inbox").content.decode()
    assert row.text in html
    assert "Only operators can decide." in html
    for address in ("/inbox/decide", "/inbox/undo/proposals/1_1"):
        given = {"decision": "proposals.approve", "pick": pick_of(row)}
        assert client.post(address, given, headers=HTMX).status_code == 403


def test_the_page_takes_the_same_number_of_queries_however_many_wait(file):
    client = signed_in("operator")

    def queries(more):
        for _ in range(more):
            ProposalEvidenceFactory(proposal=waiting(file), session=SessionFactory())
        with CaptureQueriesContext(
            connection,
        ) as found:
            client.get("/inbox?view=proposals")
        return len(found)

    queries(10)
    assert queries(0) == queries(10)
