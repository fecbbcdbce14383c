from __future__ import annotations

import io
import json
import time

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from claudeops.lib.secrets import mask
from memories.capture.statement import Provenance
from memories.lifecycle import verbs
from memories.lifecycle.bulk_write import BATCH
from memories.models import Fact, Memory, MemoryChange, ModelCall, Segment, Source
from memories.observe.categories import INSTRUCTIONS, reclassify
from memories.taxonomy import TAXONOMY_VERSION
from tests.memories.llm.conftest import recordings
from tests.support.factories import MemoryFactory, TranscriptFactory
from tests.support.processes import manage

__all__ = ["recordings"]

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 8 * BATCH
CLEAR, UNCLEAR = "Backups of the ledger run before each restart", "Seven is enough for everybody"


def known(observation: str, category: str = "projects", **fields: object) -> Memory:
    """A memory of an older version of the taxonomy."""
    return MemoryFactory(
        taxonomy="knowledge",
        taxonomy_version=TAXONOMY_VERSION - 1,
        category=category,
        service=None,
        observation=observation,
        **fields,
    )


def said(memory: Memory, category: str) -> None:
    transcript = TranscriptFactory(cli_session_id=f"of-{memory.pk}")
    part = transcript.parts.create(number=1, start=0, end=10)
    segment = Segment.objects.create(transcript=transcript, part=part, number=1)
    Fact.objects.create(segment=segment, number=1, text=memory.observation, memory=memory, said_category=category)


def answers(recordings, texts: list[str], categories: list[str]) -> None:
    lines = "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))
    answer = {
        "categories": [{"number": n, "category": each, "confidence": 0.8} for n, each in enumerate(categories, 1)]
    }
    recordings.say("classifier", INSTRUCTIONS, mask(lines), json.dumps(answer))


def test_a_memory_of_an_older_version_gets_its_category_with_a_change(settings):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    memory, current = known(CLEAR), MemoryFactory(taxonomy="knowledge", category="projects", observation=CLEAR + " too")
    other = MemoryFactory(taxonomy="ops", taxonomy_version=0, observation=CLEAR + " at last")
    done = reclassify(dry_run=False, by="anna")
    memory.refresh_from_db()
    assert (memory.category, memory.taxonomy_version) == ("operations", TAXONOMY_VERSION)
    assert (done.due, done.changed, done.waiting, dict(done.moves)) == (1, 1, 0, {"projects → operations": 1})
    (change,) = MemoryChange.objects.filter(memory=memory)
    assert (change.kind, change.actor, change.before["category"]) == ("edited", "anna", "projects")
    assert change.reason.startswith(f"Version {TAXONOMY_VERSION} of the taxonomy: keywords, ")
    assert not MemoryChange.objects.filter(memory__in=[current, other]).exists()


def test_the_observers_word_decides_where_keywords_do_not(settings):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    memory = known(UNCLEAR)
    said(memory, "preferences")
    assert reclassify(dry_run=False, by="anna").by == {"observer": 1}
    memory.refresh_from_db()
    assert memory.category == "preferences"


def test_the_classifier_decides_the_rest_in_one_call(recordings):
    texts = [f"{UNCLEAR}, number {n}" for n in range(3)]
    memories = [known(text) for text in texts]
    answers(recordings, texts, ["operations", "projects", "cooking"])
    done = reclassify(dry_run=False, by="anna")
    assert (done.changed, done.same, done.waiting) == (1, 1, 1)
    assert [Memory.objects.get(pk=memory.pk).taxonomy_version for memory in memories] == [
        TAXONOMY_VERSION,
        TAXONOMY_VERSION,
        TAXONOMY_VERSION - 1,
    ]
    assert ModelCall.objects.count() == 1


def test_without_a_classifier_the_rest_waits_and_the_next_run_takes_it(recordings):
    memory = known(UNCLEAR)
    done = reclassify(dry_run=False, by="anna")
    assert (done.waiting, done.changed) == (1, 0)
    assert "no recorded answer" in done.why
    answers(recordings, [UNCLEAR], ["operations"])
    done = reclassify(dry_run=False, by="anna")
    memory.refresh_from_db()
    assert (done.due, done.changed, done.why, memory.category) == (1, 1, "", "operations")


def test_a_run_that_was_killed_goes_on_and_makes_no_change_twice(settings, monkeypatch):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    monkeypatch.setattr("memories.observe.categories.BATCH", 2)
    memories = [known(f"{CLEAR}, number {n}") for n in range(5)]

    def killed(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reclassify(dry_run=False, by="anna", progress=killed)
    assert MemoryChange.objects.count() == 2
    assert reclassify(dry_run=False, by="anna").due == 3
    assert reclassify(dry_run=False, by="anna").due == 0
    assert MemoryChange.objects.count() == len(memories)
    assert not Memory.objects.exclude(category="operations").exists()


def test_a_process_that_is_killed_and_run_again_is_one_run():
    rows = [MemoryFactory.build(taxonomy="knowledge", taxonomy_version=0, category="projects") for _ in range(MANY)]
    for number, row in enumerate(rows):
        row.service, row.observation = None, f"{CLEAR}, number {number}"
    Memory.objects.bulk_create(rows)
    run = ("memory", "reclassify", "--taxonomy", "knowledge", "--by", "anna")
    process = manage(*run, more={"CLAUDEOPS_MODEL_CLASSIFIER": ""})
    while process.poll() is None and not MemoryChange.objects.exists():
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert MemoryChange.objects.count() % BATCH == 0 < MemoryChange.objects.count()
    process = manage(*run, more={"CLAUDEOPS_MODEL_CLASSIFIER": ""})
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert MemoryChange.objects.count() == Memory.objects.filter(category="operations").count() == MANY


def test_a_category_that_a_person_chose_stays(settings):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    get_user_model().objects.create_user("anna")
    edited, added = known(CLEAR, "operations"), known(CLEAR + " too", "projects", source=Source.HUMAN)
    verbs.edit(edited, category="people-relationships", by="anna", provenance=Provenance.typed_by("anna"))
    MemoryChange.objects.create(
        memory=added, memory_uuid=added.uuid, kind="created", actor="anna", after={"category": "projects"}
    )
    done = reclassify(dry_run=False, by="anna")
    assert (done.people, done.changed) == (2, 0)
    assert [Memory.objects.get(pk=row.pk).category for row in (edited, added)] == ["people-relationships", "projects"]
    assert not Memory.objects.filter(taxonomy_version__lt=TAXONOMY_VERSION).exists()


def test_what_a_run_of_a_person_chose_is_not_that_persons_choice(settings):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    memory = known(CLEAR)
    reclassify(dry_run=False, by="anna")
    Memory.objects.filter(pk=memory.pk).update(taxonomy_version=TAXONOMY_VERSION - 1, category="projects")
    assert reclassify(dry_run=False, by="anna").people == 0


def test_a_category_that_is_gone_is_replaced_even_if_a_person_chose_it(settings):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    memory = known(CLEAR, "gone", source=Source.HUMAN)
    MemoryChange.objects.create(
        memory=memory, memory_uuid=memory.uuid, kind="created", actor="anna", after={"category": "gone"}
    )
    assert reclassify(dry_run=False, by="anna").changed == 1


def test_a_dry_run_says_what_would_change_and_asks_nobody(recordings):
    known(CLEAR)
    known(UNCLEAR)
    out, err = io.StringIO(), io.StringIO()
    call_command("memory", "reclassify", "--taxonomy", "knowledge", "--dry-run", stdout=out, stderr=err)
    assert out.getvalue() == (
        "Would be: 2 memories of an older version: 1 with another category, 0 with the same, 0 whose category a person "
        "chose, 1 left to the classifier.\n  projects → operations: 1\n"
    )
    assert not MemoryChange.objects.exists()
    assert not ModelCall.objects.exists()


def test_the_command_prints_one_document(settings):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    known(CLEAR)
    known(UNCLEAR)
    out = io.StringIO()
    call_command("memory", "reclassify", "--taxonomy", "knowledge", "--json", stdout=out)
    result = json.loads(out.getvalue())["result"]
    assert (result["due"], result["changed"], result["waiting"]) == (2, 1, 1)
    assert "no model is set" in result["why"]


def test_ten_memories_more_need_no_query_more(settings):
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    counts = []
    for count in (10, 20):
        for n in range(count):
            known(f"{CLEAR}, {count} and {n}")
        with CaptureQueriesContext(connection) as queries:
            reclassify(dry_run=False, by="anna")
        counts.append(sum(not query["sql"].startswith("UPDATE memories") for query in queries))
    assert counts[0] == counts[1]
