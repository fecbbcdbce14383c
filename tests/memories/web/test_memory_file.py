"""`/memory-file`: what the page shows of the rows, and edit, revert, decide and begin in a real repository."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from memories.curate import files
from memories.curate.document import MOST, WARN_AT, parse
from memories.models import CommitKind, MemoryFile, MemoryFileCommit, ProposalKind, ProposalState, Tier
from memories.web.memory_file import age_of, room_of, shown
from tests.memories.curate.conftest import data, theirs
from tests.memories.curate.repositories import approved, messages
from tests.memories.people import HTMX, signed_in
from tests.support.factories import (
    MemoryFileFactory,
    ProjectFactory,
    ProposalEvidenceFactory,
    ProposalFactory,
    SessionFactory,
)

pytestmark = pytest.mark.django_db
__all__ = ["data", "theirs"]

TEXT = """# Memory

## Operations

- (2026-11-01) The restic check runs at `05:30`
- (2026-11-02) Caddy <b>binds</b> 10.8.0.1

## Preferences

- (2026-11-03) Times are local
"""
AT = datetime(2026, 11, 24, 12, tzinfo=UTC)


def commit(file, **fields):
    number = file.commits.count()
    given = {"sha": f"{number:040x}", "at": timezone.now(), "kind": CommitKind.EDIT, "author": "ada", **fields}
    return MemoryFileCommit.objects.create(file=file, **given)


@pytest.fixture
def file(settings):
    return MemoryFileFactory(text=TEXT, entries=3, host=settings.CLAUDEOPS_HOST, sha256="0" * 64)


def page(client, address="/memory-file"):
    return client.get(address).content.decode()


def test_the_file_is_shown_with_who_wrote_each_line(file):
    session = SessionFactory()
    promoted = ProposalFactory(file=file, state=ProposalState.PROMOTED)
    ProposalEvidenceFactory(proposal=promoted, session=session)
    ours = commit(file, kind=CommitKind.PROMOTION, author="claudeops", proposal=promoted)
    adas = commit(file, at=timezone.now() - timedelta(days=20), author="Ada <i>", subject="edits <b>", body="x <b>")
    file.blame = [adas.pk, adas.pk, adas.pk, adas.pk, ours.pk, adas.pk, None, None, None, None]
    file.save()
    html = page(signed_in("operator"))
    assert f'<a href="/sessions/{session.pk}">#{session.pk}</a>' in html
    assert "Ada &lt;i&gt;" in html
    assert "<code>05:30</code>" in html
    assert "&lt;b&gt;binds" in html
    assert "<b>binds" not in html
    assert 'class="is-month"' in html
    assert "not committed" in html
    assert "3 of 200 entries" in html
    assert "edits &lt;b&gt;" in html
    assert 'aria-current="page">Memory file</a>' in html


def test_no_process_is_started_for_the_page(file, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("git was started")

    monkeypatch.setattr("subprocess.Popen", refuse)
    client = signed_in("operator")
    for tab in ("", "?tab=text", "?tab=history", "?tab=edit"):
        assert client.get(f"/memory-file{tab}").status_code == 200


def test_without_a_file_the_page_says_how_it_begins_and_begins_it(data):
    client = signed_in("operator")
    assert "There is no MEMORY.md yet" in page(client)
    assert client.post("/memory-file").url == "/memory-file"
    assert MemoryFile.objects.get().commit
    assert "The file is empty." in page(client)
    assert (data / "MEMORY.md").read_text() == "# Memory\n"


def test_a_project_has_a_page_of_its_own(file):
    project = ProjectFactory(slug="shop")
    client = signed_in("operator")
    assert "shop has no MEMORY.md yet" in page(client, "/memory-file/shop")
    assert 'href="/memory-file/shop"' in page(client, "/projects/shop")
    MemoryFileFactory(project=project, text="# Memory\n\n## Operations\n\n- The shop closes at 20:00\n", entries=1)
    html = page(client, "/memory-file/shop")
    assert "The shop closes at 20:00" in html
    assert "Caddy" not in html
    assert client.get("/memory-file/nowhere").status_code == 404


def test_a_persons_text_is_saved_as_a_commit_of_theirs(theirs):
    file = files.read(files.file_of(None))
    client = signed_in("operator", "ann")
    text = file.text + "- (2026-11-24) The cellar server has 8 TB\n"
    given = {"text": text.replace("\n", "\r\n"), "seen": file.sha256}
    assert client.post(f"/memory-file/{file.pk}/save", given).url == "/memory-file"
    assert (theirs / "MEMORY.md").read_text() == text
    assert file.commits.first().author == "ann"


def test_a_text_that_somebody_changed_meanwhile_is_not_overwritten_and_the_difference_is_shown(theirs):
    file = files.read(files.file_of(None))
    client = signed_in("operator", "ann")
    path = theirs / "MEMORY.md"
    path.write_text(path.read_text().replace("10.8.0.1", "10.8.0.9"))
    given = {"text": file.text.replace("10.8.0.1", "10.8.0.7"), "seen": file.sha256}
    answer = client.post(f"/memory-file/{file.pk}/save", given)
    html = answer.content.decode()
    assert answer.status_code == 409
    assert "changed since you opened it" in html
    assert "10.8.0.9" in path.read_text()
    assert "− theirs" in html
    assert "10.8.0.7</textarea>" in html.replace("\n</textarea>", "</textarea>")
    given["seen"] = html.partition('name="seen" value="')[2].partition('"')[0]
    assert client.post(f"/memory-file/{file.pk}/save", given).status_code == 302
    assert "10.8.0.7" in path.read_text()


def test_a_credential_is_not_saved_and_the_text_is_not_lost(theirs):
    file = files.read(files.file_of(None))
    text = file.text + "- key AKIAQWERTYUIOPASDFGH here\n- another line that stays\n"
    answer = signed_in("operator").post(f"/memory-file/{file.pk}/save", {"text": text, "seen": file.sha256})
    assert answer.status_code == 422
    assert "another line that stays" in answer.content.decode()
    assert "another line" not in (theirs / "MEMORY.md").read_text()


def test_a_promotion_is_reverted_by_a_commit(data):
    proposal = approved(files.file_of(None))
    files.promote_due()
    file = MemoryFile.objects.get()
    sha = file.commits.get().sha
    client = signed_in("operator", "ann")
    assert client.post(f"/memory-file/{file.pk}/revert", {"sha": sha}).url == "/memory-file"
    assert "The restic prune" not in (data / "MEMORY.md").read_text()
    assert messages(data)[0].startswith(f"Revert {sha[:7]}")
    proposal.refresh_from_db()
    assert proposal.state == ProposalState.REJECTED
    client.post(f"/memory-file/{file.pk}/revert", {"sha": "--help"})
    assert "has no commit" in page(client)


def test_an_approval_is_taken_back_after_its_commit_and_the_proposal_waits_again(data):
    row = ProposalFactory(file=files.file_of(None), tier=Tier.PERSON, text="The shop closes at 20:00")
    client = signed_in("operator", "ann")
    html = page(client, "/inbox")
    pick = html.partition('name="pick" value="')[2].partition('"')[0]
    given = {"decision": "proposals.approve", "pick": pick}
    html = client.post("/inbox/decide", given, headers=HTMX).content.decode()
    undo = html.partition('hx-post="/inbox/undo/')[2].partition('"')[0]
    assert files.promote_due().done == (row.pk,)
    assert "20:00" in (data / "MEMORY.md").read_text()
    assert "1 proposal waits again." in client.post(f"/inbox/undo/{undo}", headers=HTMX).content.decode()
    row.refresh_from_db()
    assert (row.state, row.tier) == (ProposalState.WAITING, Tier.PERSON)
    assert "20:00" not in (data / "MEMORY.md").read_text()


def test_a_conflict_leads_and_is_decided_there(file):
    conflict = {"base": "x", "theirs": "Times are local", "ours": "Times are in UTC", "line": 8}
    row = ProposalFactory(
        file=file,
        tier=Tier.PERSON,
        kind=ProposalKind.CHANGE,
        section="preferences",
        target="x",
        text="Times are in UTC",
        conflict=conflict,
    )
    client = signed_in("operator", "ann")
    html = page(client)
    assert html.index("A person and a promotion") < html.index('id="file-title"')
    assert '<span class="tag tag-warn">conflict</span>' in html
    pick = html.partition('name="pick" value="')[2].partition('"')[0]
    given = {"pick": pick, "decision": "proposals.approve", "observation": "Times are local and in UTC"}
    assert client.post(f"/memory-file/{file.pk}/decide", given).url == "/memory-file"
    row.refresh_from_db()
    assert (row.state, row.text, row.decided_by) == (ProposalState.APPROVED, "Times are local and in UTC", "ann")


@pytest.mark.parametrize(
    "given",
    [{}, {"decision": "held.approve", "pick": "held-1-1"}, {"decision": "proposals.x", "pick": "proposals-1-0"}],
)
def test_a_decision_that_cannot_be_read_changes_nothing(file, given):
    client = signed_in("operator")
    client.post(f"/memory-file/{file.pk}/decide", given)
    assert "Nothing was changed." in page(client)


def test_the_history_of_an_entry_follows_what_it_replaced(file):
    first = ProposalFactory(file=file, state=ProposalState.PROMOTED, text="The check runs at 4")
    second = ProposalFactory(
        file=file, state=ProposalState.PROMOTED, kind=ProposalKind.CHANGE, target=first.text, text="It runs at 05:30"
    )
    commit(file, proposal=first, subject="the oldest", at=timezone.now() - timedelta(days=3))
    commit(file, subject="another", at=timezone.now() - timedelta(days=2))
    last = commit(file, proposal=second, subject="the latest")
    file.blame = [None] * 4 + [last.pk]
    file.save()
    html = page(signed_in("operator"), "/memory-file?tab=history&line=5")
    assert html.index("the latest") < html.index("the oldest")
    assert "another" not in html
    assert signed_in("operator", "bob").get("/memory-file?tab=history&line=1").status_code == 404


def test_another_hosts_file_is_read_and_not_edited(file):
    MemoryFile.objects.update(host="nas <b>")
    client = signed_in("operator")
    html = page(client)
    assert "The repository is on the host nas &lt;b&gt;" in html
    assert "Edit the file" not in html
    client.post(f"/memory-file/{file.pk}/revert", {"sha": "0" * 40})
    assert "Do it there." in page(client)


def test_a_problem_is_said_on_top(file):
    MemoryFile.objects.update(problem="The repository is in the middle of a rebase.", problem_since=timezone.now())
    html = page(signed_in("viewer"))
    assert html.index("middle of a rebase") < html.index('id="file-title"')


def test_viewers_see_and_change_nothing(file):
    client = signed_in("viewer")
    ProposalFactory(file=file)
    html = page(client)
    assert "Times are local" in html
    assert "Edit the file" not in html
    assert "Revert" not in html
    assert 'name="decision"' not in html
    assert client.get(f"/memory-file/{file.pk}/download").content.decode() == TEXT
    assert client.post("/memory-file").status_code == 403
    for verb in ("save", "revert", "decide"):
        assert client.post(f"/memory-file/{file.pk}/{verb}").status_code == 403


def test_what_comes_from_outside_is_not_approved_beside_the_file_but_in_the_inbox(file):
    ours = ProposalFactory(file=file, tier=Tier.PERSON, trust="session")
    outside = ProposalFactory(file=file, tier=Tier.PERSON, trust="external")
    html = page(signed_in("operator"))
    assert f'value="proposals-{ours.pk}-0"' in html
    assert f'value="proposals-{outside.pk}-0"' not in html
    assert f'item=proposals-{outside.pk}">Review' in html


@pytest.mark.parametrize("tab", ["", "?tab=history"])
def test_the_page_takes_the_same_number_of_queries_however_long_the_file_is(file, tab):
    client = signed_in("operator")

    def queries(more):
        for _ in range(more):
            row = commit(file, proposal=ProposalFactory(file=file, state=ProposalState.PROMOTED))
            ProposalEvidenceFactory(proposal=row.proposal, session=SessionFactory())
            file.text += f"- (2026-11-24) Line {row.pk}\n"
            file.blame = [*file.blame, row.pk]
            ProposalFactory(file=file)
        file.save()
        with CaptureQueriesContext(connection) as found:
            client.get(f"/memory-file{tab}")
        return len(found)

    queries(10)
    assert queries(0) == queries(10)


def test_room_is_said_from_180_on_and_when_it_ends_only_if_measured():
    def of(count, **given):
        return room_of(parse("## Operations\n" + "- x\n" * count), **given)

    assert (of(WARN_AT - 1).level, of(WARN_AT).level, of(MOST).level) == ("ok", "near", "over")
    assert of(100).full == ""
    assert of(100, net=10, since=AT - timedelta(days=5), at=AT).full == ""
    assert of(100, net=-3, since=AT - timedelta(days=30), at=AT).full == ""
    assert of(140, net=30, since=AT - timedelta(days=60), at=AT).full == "full in about 4 months"
    assert of(199, net=30, since=AT - timedelta(days=60), at=AT).full == "full in about 1 week"
    assert of(MOST, net=30, since=AT - timedelta(days=60), at=AT).full == "full"


@given(st.text(alphabet="#-* \n\r\tab<!>`", max_size=200))
def test_any_text_is_shown_and_no_entry_is_lost(text):
    document = parse(text)
    found = shown(document, [], {}, frozenset(), AT)
    assert sum(part.count for part in found.parts) == len(document.entries)


def test_the_younger_a_line_the_darker():
    ages = [age_of(AT - timedelta(days=days), AT) for days in (1, 8, 31)]
    assert ages == ["week", "month", ""]
