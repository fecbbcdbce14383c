"""Task items: their forms, and that no text of an agent speaks, mentions or links at the other end."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.notifications import FORMS, GITHUB, JSON, LONGEST_TITLE, TODOIST, Item, compose, title_of

ITEM = Item(
    pk=7,
    uuid="0a1b2c3d-0000-4000-8000-000000000001",
    kind="add",
    section="operations",
    text="The prune of `media` holds its lock until 06:10",
    target="",
    trust="outside text",
    project="nas",
    expires_at=datetime(2026, 12, 1, 8, tzinfo=UTC),
    link="https://ops.example.org/inbox?item=proposals-7",
)


def test_the_plain_form_has_the_proposal_as_fields():
    found = compose(JSON, ITEM)
    assert found.headers == {}
    assert found.document["title"] == "Review memory proposal: The prune of `media` holds its lock until 06:10"
    assert found.document["link"] == ITEM.link
    assert found.document["proposal"]["id"] == 7
    assert found.document["proposal"]["expires_at"] == "2026-12-01T08:00:00+00:00"


def test_an_issue_of_github_has_its_text_in_a_block_of_code():
    found = compose(GITHUB, ITEM, "the-token")
    assert found.headers["Authorization"] == "Bearer the-token"
    assert set(found.document) == {"title", "body"}
    assert "\n    The prune of `media` holds its lock until 06:10" in found.document["body"]
    assert f"- Decide: {ITEM.link}" in found.document["body"]


def test_a_task_of_todoist_has_content_and_description():
    found = compose(TODOIST, ITEM, "the-token")
    assert found.document["content"].startswith("Review memory proposal: The prune of \\`media\\`")


def test_a_removal_says_what_it_removes():
    body = compose(GITHUB, replace(ITEM, kind="remove", text="", target="The old pool")).document["body"]
    assert "Removes:\n\n    The old pool" in body
    assert "Writes:" not in body


def test_a_credential_is_masked_and_a_mention_or_an_address_leads_nowhere():
    text = "Ask @ada at https://evil.example with ghp_" + "a1B2" * 9
    for form in FORMS:
        said = str(compose(form, replace(ITEM, text=text)).document)
        assert "ghp_a1B2" not in said
        assert "@ada" not in said
        assert "https://evil" not in said


@given(text=st.text() | st.sampled_from(["# x", "```\nfence", "[a](http://b)", "@team", "a\u2028# b", "<!-- x -->"]))
def test_any_text_is_one_line_of_its_own(text):
    item = replace(ITEM, text=text)
    assert len(title_of(item)) <= len("Review memory proposal: ") + LONGEST_TITLE
    assert len(title_of(item).splitlines()) == 1
    for form in (GITHUB, TODOIST):
        document = compose(form, item).document
        rows = str(document.get("body") or document["description"]).split("\n")
        inside = rows[rows.index("Writes:") + 2 :] if "Writes:" in rows else []
        assert all(row.startswith("    ") for row in inside)
        assert not re.search(r"@\w", "\n".join(inside))
