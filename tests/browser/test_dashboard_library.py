"""The library in a real browser: write an entry and find it; read a decision and what it governs."""

from __future__ import annotations

from pathlib import Path

import pytest

from memories.library.decisions.index import sync
from tests.support.factories import ProjectFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_entry_of_the_journal_is_written_and_found(operators_window, axe, settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    one = operators_window()
    page = one.open("/library/journal")
    page.fill("#journal-action", "restart")
    page.fill("#journal-tool", "jellyfin")
    page.fill("#journal-detail", "It answered after 74 seconds.")
    page.fill("#journal-reason", "The library scan had blocked it.")
    with page.expect_navigation():
        page.click("text=Add")
    assert one.findings(axe) == []
    page.fill("[data-search]", "tool:jellyfin blocked")
    page.press("[data-search]", "Enter")
    page.wait_for_url("**/library/journal?tool=jellyfin&text=blocked")
    with page.expect_navigation():
        page.click("tbody .cell-text a")
    assert "It answered after 74 seconds." in page.text_content("main")
    assert "line 1" in page.text_content("main")
    assert one.findings(axe) == []


def test_a_decision_is_read_with_what_it_governs_and_what_holds_in_its_place(operators_window, axe, tmp_path):
    shop = ProjectFactory(slug="shop", path=str(tmp_path))
    (tmp_path / "adr").mkdir()
    _put(tmp_path, 1, "Prices are floats", "superseded", "superseded-by: 2")
    _put(tmp_path, 2, "Prices are whole cents", "accepted", "supersedes: 1")
    sync(shop)
    one = operators_window()
    page = one.open("/library/decisions")
    assert one.findings(axe) == []
    page.click("tbody >> text=Prices are floats")
    page.wait_for_url("**/library/decisions/shop/0001.md")
    assert page.text_content("#governs-title + span").strip() == "who edits one is told it"
    assert page.locator("code >> text=shop/prices/**").count() == 1
    assert one.findings(axe) == []
    page.click(".decision-band >> text=Prices are whole cents")
    page.wait_for_url("**/library/decisions/shop/0002.md")
    page.keyboard.press("[")
    page.wait_for_url("**/library/decisions/shop/0001.md")
    page.click(".successions text >> text=2 Prices are whole cents")
    page.wait_for_url("**/library/decisions/shop/0002.md")


def _put(root: Path, number: int, title: str, status: str, link: str) -> None:
    front = f"status: {status}\ndate: 2026-11-0{number}\npaths: [shop/prices/**]\n{link}"
    (root / "adr" / f"000{number}.md").write_text(f"---\n{front}\n---\n\n# {title}\n\n## Context\n\nText.\n")
