"""MEMORY.md in a real browser: read, edit, conflict, revert; and proposals in the inbox by keys alone."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from memories.curate import files, proposals
from memories.models import MemoryFile, Proposal, ProposalKind, ProposalState, Tier
from tests.memories.curate.conftest import data
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.django_db(transaction=True)]
__all__ = ["data"]

PAGE = "/memory-file"
LONG = "averyveryverylongword" * 4
CHECK, MINE = "The restic check runs at 05:30", "The restic check runs at 06:20"
PROMOTED = "The restic check runs after 06:10"


def propose(file: MemoryFile, text: str, **given: Any) -> Proposal:
    memory = MemoryFactory(observation=f"{text}, says a log", session=SessionFactory())
    fields = {"evidence": [memory], "confidence": 0.9, "by": "reflector:test", **given}
    fields.setdefault("key", hashlib.sha256(text.encode()).hexdigest())
    return proposals.propose(file, fields.pop("kind", ProposalKind.ADD), "operations", text=text, **fields)


def promoted(file: MemoryFile, text: str) -> None:
    proposals.approve(propose(file, text).pk, by="ada")
    files.promote_due()


@pytest.fixture
def file(house: Any, data: Any) -> MemoryFile:
    """A file with two promotions."""
    file = files.init(None)
    promoted(file, CHECK)
    promoted(file, f"Caddy binds `10.8.0.1` {LONG}")
    return files.read(file)


@pytest.fixture
def conflict(file: MemoryFile) -> Proposal:
    row = propose(file, PROMOTED, kind=ProposalKind.CHANGE, target=CHECK, tier=Tier.PERSON)
    files.edit(file, file.text.replace(CHECK, MINE), by="operator", seen=file.sha256)
    row.refresh_from_db()
    assert row.conflict
    return row


def text_of(data: Any) -> str:
    return str((data / "MEMORY.md").read_text())


def test_the_page_has_no_barriers_and_fits_every_screen(operators_window, conflict, axe, album):
    file = MemoryFile.objects.get()
    propose(file, f"The shop closes at 20:00 {LONG}", tier=Tier.PERSON)
    propose(file, "", kind=ProposalKind.REMOVE, target=MINE, key="remove")
    one = operators_window()
    for tab in ("", "?tab=text", "?tab=history", "?tab=edit", "?tab=history&line=5"):
        one.open(f"{PAGE}{tab}")
        assert one.faults(axe, album, f"memory-file-{tab[5:9]}") == []
    one.open("/inbox?view=proposals")
    assert one.faults(axe, album, "inbox-proposals") == []
    assert one.complaints == []


def test_a_file_begins_and_is_edited_by_keys(operators_window, house, data, axe, album):
    one = operators_window()
    page = one.open(PAGE)
    assert one.faults(axe, album, "memory-file-none") == []
    page.locator("#begin").focus()
    page.keyboard.press("Enter")
    page.locator("#edit-file").wait_for()
    page.keyboard.press("e")
    page.locator("#file-text").fill("# Memory\n\n## Operations\n\n- (2026-11-24) Times are local\n")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator("#toasts", has_text="Saved as a commit of yours").wait_for()
    page.locator(".blame .li", has_text="Times are local").wait_for()
    assert "Times are local" in text_of(data)
    assert one.complaints == []


def test_who_saves_second_keeps_the_text_and_sees_the_difference(operators_window, file, data):
    one = operators_window()
    page = one.open(f"{PAGE}?tab=edit")
    files.edit(file, file.text.replace("10.8.0.1", "10.8.0.9"), by="bob", seen=file.sha256)
    page.locator("#file-text").fill(file.text.replace("10.8.0.1", "10.8.0.7"))
    page.get_by_role("button", name="Save the file").click()
    page.locator("#not-saved ins", has_text="7").wait_for()
    assert "10.8.0.9" in text_of(data)
    one.complaints.clear()  # that it was answered with 409
    page.get_by_role("button", name="Save the file").click()
    page.locator("#toasts", has_text="Saved").wait_for()
    assert "10.8.0.7" in text_of(data)


@pytest.mark.parametrize(
    ("keys", "kept"), [(["1"], MINE), (["2"], PROMOTED), (["3"], "The restic check runs at 06:20 and 06:40")]
)
def test_a_conflict_is_decided_by_keys(operators_window, conflict, data, keys, kept):
    one = operators_window()
    page = one.open(PAGE)
    page.keyboard.press(keys[0])
    if keys == ["3"]:
        page.locator(".both textarea").fill(kept)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    page.locator("#toasts .toast").wait_for()
    assert page.locator(".clash").count() == 0
    files.promote_due()
    assert {text for text in (MINE, PROMOTED, kept) if f"{text}\n" in text_of(data)} == {kept}
    assert one.complaints == []


def test_a_promotion_is_reverted_and_the_revert_is_in_the_history(operators_window, file, data):
    one = operators_window()
    page = one.open(f"{PAGE}?tab=history")
    page.locator(".commits > li", has_text=CHECK).get_by_role("button", name="Revert").click()
    page.locator("#toasts", has_text="is reverted").wait_for()
    assert CHECK not in text_of(data)
    one.open(f"{PAGE}?tab=history")
    assert page.locator(".commits > li").first.text_content().strip().startswith("Revert")
    assert Proposal.objects.filter(state=ProposalState.REJECTED).count() == 1


def test_proposals_are_approved_edited_rejected_and_taken_back_by_keys_alone(operators_window, file, data):
    rows = [propose(file, f"The shop closes at {hour}:00", tier=Tier.PERSON) for hour in (18, 19, 20)]
    one = operators_window()
    page = one.open("/inbox?view=proposals")
    page.locator(".inbox-title", has_text="18:00").wait_for()

    def press(key: str, said: str) -> None:
        page.wait_for_timeout(450)  # the decisions rest after a swap
        page.keyboard.press(key)
        page.locator(".inbox-said", has_text=said).wait_for()

    press("r", "1 rejected.")
    press("u", "1 proposal waits again.")
    press("a", "1 approved.")
    page.locator(".inbox-title", has_text="19:00").wait_for()
    page.wait_for_timeout(450)
    page.keyboard.press("e")
    page.locator("#inbox-text:focus").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("The shop closes at 19:30")
    page.keyboard.press("Escape")
    page.locator(".inbox-do .b-main").focus()
    page.keyboard.press("Enter")
    page.locator(".inbox-said", has_text="1 approved.").wait_for()
    page.wait_for_timeout(450)
    page.keyboard.press("x")
    press("r", "1 rejected.")
    states = {row.pk: (row.state, row.text) for row in Proposal.objects.filter(pk__in=[row.pk for row in rows])}
    assert states == {
        rows[0].pk: (ProposalState.APPROVED, "The shop closes at 18:00"),
        rows[1].pk: (ProposalState.APPROVED, "The shop closes at 19:30"),
        rows[2].pk: (ProposalState.REJECTED, "The shop closes at 20:00"),
    }
    files.promote_due()
    assert "19:30" in text_of(data)
    assert one.complaints == []


def test_everything_works_without_a_script(operators_window, conflict, data):
    one = operators_window(java_script_enabled=False)
    page = one.open(PAGE)
    page.locator(".both > summary").click()
    page.locator(".both textarea").fill("The restic check runs at 07:00")
    with page.expect_navigation():
        page.get_by_role("button", name="Take this text").click()
    assert "1 approved." in page.locator("#toasts").text_content()
    files.promote_due()
    assert "runs at 07:00" in text_of(data)
    one.open(f"{PAGE}?tab=history")
    with page.expect_navigation():
        page.get_by_role("button", name="Revert").first.click()
    assert "is reverted" in page.locator("#toasts").text_content()
    one.open(f"{PAGE}?tab=edit")
    page.locator("#file-text").fill("# Memory\n")
    with page.expect_navigation():
        page.get_by_role("button", name="Save the file").click()
    assert text_of(data) == "# Memory\n"
