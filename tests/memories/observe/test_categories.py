from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.llm import Reason, Unavailable
from memories.models import ClassifiedBy
from memories.observe.categories import INSTRUCTIONS, MEANINGS, Category, ask_classifier, by_keywords, decide
from memories.taxonomy import KNOWLEDGE
from tests.memories.llm.conftest import recordings

__all__ = ["recordings"]

EXAMPLES = [
    # A category and a statement, written by the author of the keywords: an upper bound.
    ("preferences", "The operator prefers short answers without tables."),
    ("preferences", "Anna wants error messages in German."),
    ("preferences", "The user does not like emoji in commit texts."),
    ("preferences", "He would rather see a diff than a description of it."),
    ("preferences", "Reports are wanted in the morning, before nine."),
    ("rules-conventions", "Commit messages are written in the imperative."),
    ("rules-conventions", "Type hints are required in every public function."),
    ("rules-conventions", "Secrets must not be committed, not even to a branch."),
    ("rules-conventions", "The naming of tests follows the sentence they prove."),
    ("rules-conventions", "No dependency may be added without an argument in the documents."),
    ("system-architecture", "The importer writes through the queue, never to the table itself."),
    ("system-architecture", "The billing service depends on the ledger's data model."),
    ("system-architecture", "Orders are kept in PostgreSQL, sessions in Redis."),
    ("system-architecture", "The raw log is the source of truth, the database its projection."),
    ("system-architecture", "The API gateway checks tokens before any microservice sees a request."),
    ("operations", "Vault must be unsealed by hand after a reboot."),
    ("operations", "Backups of the mail server run at 03:00 and take 40 minutes."),
    ("operations", "The certificate of the registry is renewed on the first Monday."),
    ("operations", "A deployment to production needs a maintenance window."),
    ("operations", "Jellyfin takes 60 s before its port answers."),
    ("memory-system", "Memory files of agents are limited to 25 KB."),
    ("memory-system", "The memory gate holds every text with a URL."),
    ("memory-system", "Recalled memories are not to be stored again."),
    ("projects", "The roadmap moves the mobile client to the second quarter."),
    ("projects", "Version 3 of the shop is due on the first of March."),
    ("projects", "The project was postponed until the audit is over."),
    ("projects", "The old API stays until the end of the year, it was decided."),
    ("people-relationships", "Bernd is responsible for the network."),
    ("people-relationships", "Anna is the product owner of the shop."),
    ("people-relationships", "The customer's contact person is Mrs. Weber."),
    ("people-relationships", "Changes to firewalls are to be agreed on with Tom."),
]


def test_the_keywords_are_right_where_they_decide():
    """On 31 statements written by hand the keywords decide on most, and wrongly on at most one."""
    counts = Counter(
        "none" if (found := by_keywords(text)) is None else "right" if found.slug == slug else "wrong"
        for slug, text in EXAMPLES
    )
    assert counts["wrong"] <= 1
    assert counts["right"] >= 18


def test_on_honest_notes_of_operations_the_keywords_are_hardly_ever_wrong():
    """The notes were written for the gate, before there were keywords; all are of operations or architecture."""
    lines = (Path(__file__).parents[1] / "data" / "trust.jsonl").read_text(encoding="utf-8").splitlines()
    honest = [note["text"] for note in map(json.loads, lines) if not note["hostile"]]
    counts = Counter(found.slug for text in honest if (found := by_keywords(text)))
    assert counts.total() >= 35
    assert set(counts) <= {"operations", "system-architecture"}
    assert counts["system-architecture"] <= 5


def test_keywords_are_whole_words():
    assert by_keywords("The redeployer lintel recalls nothing of cronyism") is None


def test_words_of_two_categories_are_ambiguous():
    assert by_keywords("Anna is the product owner of the backup") is None


@given(st.text(max_size=300))
def test_keywords_take_any_text(text):
    found = by_keywords(text)
    assert found is None or (found.slug in KNOWLEDGE.categories and 0 <= found.confidence <= 1)


def test_keywords_come_before_the_observers_word_and_this_before_the_classifier():
    clear, unclear = "Backups run at three; the restart follows", "Seven is enough"
    assert decide(clear, "projects") == by_keywords(clear)
    assert decide(unclear, "projects") == Category("projects", 0.7, ClassifiedBy.OBSERVER)
    assert decide(unclear, "cooking") is None
    assert decide(unclear, "") is None


def test_every_category_has_a_meaning():
    assert tuple(MEANINGS) == KNOWLEDGE.categories
    assert all(slug in INSTRUCTIONS for slug in KNOWLEDGE.categories)


@pytest.mark.django_db
def test_the_classifier_is_asked_once_for_all(recordings):
    answer = {
        "categories": [
            {"number": 2, "category": "jc:Projects", "confidence": 0.8},
            {"number": 1, "category": "operations"},
            {"number": 1, "category": "preferences"},
            {"number": 3, "category": "cooking", "confidence": 1},
            {"number": 9, "category": "projects"},
        ]
    }
    recordings.say(
        "classifier", INSTRUCTIONS, "1. one line\n2. two\n3. three\n4. four", f"```json\n{json.dumps(answer)}\n```"
    )
    assert ask_classifier(["one\nline", "two", "three", "four"]) == [
        Category("operations", 0.5, ClassifiedBy.MODEL),
        Category("projects", 0.8, ClassifiedBy.MODEL),
        Category("", 0.0, ClassifiedBy.MODEL),
        Category("", 0.0, ClassifiedBy.MODEL),
    ]


@pytest.mark.django_db
def test_without_a_classifier_the_reason_is_returned(settings):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    found = ask_classifier(["one"])
    assert isinstance(found, Unavailable)
    assert found.reason == Reason.OFF


def test_no_texts_need_no_call():
    assert ask_classifier([]) == []
