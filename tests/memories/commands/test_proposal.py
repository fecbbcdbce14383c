"""`manage.py proposal`: list, show, approve, edit, reject, undo."""

from __future__ import annotations

import pytest

from tests.support.commands import document, run
from tests.support.factories import ProposalEvidenceFactory, ProposalFactory

pytestmark = pytest.mark.django_db

TEXT = "The restic prune of `media` holds its lock until 07:00."


@pytest.fixture
def row():
    found = ProposalFactory(trust="session")
    ProposalEvidenceFactory(proposal=found, trust="session")
    return found


def test_list_shows_what_waits_and_narrows(row):
    other = ProposalFactory(file=row.file, state="rejected", section="projects")
    code, found = document("proposal", "list")
    assert (code, [one["id"] for one in found["result"]["proposals"]]) == (0, [row.pk])
    _, found = document("proposal", "list", "--state", "any", "--section", "projects")
    assert [one["id"] for one in found["result"]["proposals"]] == [other.pk]
    assert "No proposal matches." in run("proposal", "list", "--tier", "person")[1]
    assert "1 of 2; --limit shows more." in run("proposal", "list", "--state", "any", "--limit", 1)[1]


@pytest.mark.parametrize("wrong", [("--section", "odd"), ("--project", "nothing"), ("--limit", "0")])
def test_a_wrong_filter_is_named(row, wrong):
    code, out, err = run("proposal", "list", *wrong)
    assert code in (1, 2) and wrong[0].strip("-") in err and wrong[1] in err and not out


def test_show_has_evidence_and_decisions(row):
    run("proposal", "edit", row.pk, TEXT, "--by", "ann", "--reason", "Longer since May.")
    out = run("proposal", "show", row.pk)[1]
    assert TEXT in out and row.evidence.get().text in out and "edit by ann: Longer since May." in out
    code, found = document("proposal", "show", row.pk)
    assert (code, found["result"]["text"], found["result"]["trust"]) == (0, TEXT, "operator")
    assert document("proposal", "show", 999)[1]["error"]["code"] == "proposal_not_found"


def test_approve_with_a_text_and_undo(row):
    code, found = document("proposal", "approve", row.pk, "--text", TEXT, "--by", "ann")
    assert (code, found["result"]["done"]) == (0, [row.pk])
    row.refresh_from_db()
    assert (row.state, row.text, row.decided_by) == ("approved", TEXT, "ann")
    assert f"manage.py proposal undo {row.pk}" in [action["command"] for action in found["next_actions"]]
    assert run("proposal", "undo", row.pk, "--by", "ann")[0] in (0, None)
    row.refresh_from_db()
    assert (row.state, row.text) == ("waiting", row.proposed_text)


def test_of_several_what_cannot_be_done_is_said_and_the_exit_code_is_1(row):
    other = ProposalFactory(file=row.file)
    run("proposal", "reject", row.pk, "--by", "ann")
    code, found = document("proposal", "reject", row.pk, other.pk, 999, "--by", "ben")
    assert (code, found["result"]["done"]) == (1, [other.pk])
    assert [words.split(" meanwhile")[0] for words in found["result"]["refused"]] == [
        f"ann rejected proposal {row.pk}",
        "There is no proposal 999.",
    ]


def test_one_text_is_for_one_proposal(row):
    other = ProposalFactory(file=row.file)
    code, found = document("proposal", "approve", row.pk, other.pk, "--text", TEXT)
    assert (code, found["error"]["code"]) == (1, "usage") or code == 2
    code, found = document("proposal", "edit", row.pk, "   ", "--by", "ann")
    assert (code, found["error"]["code"]) == (1, "invalid_proposal")
