"""What a new text is compared with: by words and by meaning, before the transaction, and again under its lock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memories import candidates
from memories.lifecycle import verbs
from memories.models import Disagreement, Embedding, Memory, MemoryChange
from memories.store import Provenance, Statement, prepare, remember
from tests.memories.at_once import remember_at_once
from tests.support.factories import MemoryFactory, SessionFactory
from tests.support.models_http import chat, embedded_by, serving
from tests.support.processes import environment

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
KNOWN = "Old media is removed from the cache server after a season"
AGAIN = "The cache server purges media that is old after a quarter"


@pytest.fixture
def model(settings):
    """Vectors from a small server of the test's own: an embedder as any other."""
    with embedded_by(settings) as (served, model):
        served.model = model
        yield served


def said(session=None):
    return Provenance("run", "agent:watcher", (session or SessionFactory()).pk, at=NOW)


def say(text, service="jellyfin"):
    return remember(Statement("maintenance", text, service), said())


def test_a_new_memory_gets_its_vector_in_the_same_transaction(model):
    made = say("Needs the NAS mounted before it starts")
    stored = Embedding.objects.get()
    assert (stored.memory_id, stored.model) == (made.memory_id, model.model)
    assert not model.model.pending.exists()


def test_the_cosine_is_part_of_the_evidence(model):
    say("Takes 60s to start after a restart")
    say("Takes one minute to start after a restart")
    change = MemoryChange.objects.get(kind="reinforced")
    assert 0 < change.evidence["match"]["cosine"] <= 1.000001
    assert "by words alone" not in change.evidence


def test_a_model_that_is_silent_leaves_the_words_and_says_so(model):
    say("Takes 60s to start after a restart")
    model.status = 500
    assert say("Takes one minute to start after a restart").outcome == "reinforced"
    change = MemoryChange.objects.get(kind="reinforced")
    assert "semantic search is off" in change.evidence["by words alone"]
    assert "cosine" not in change.evidence["match"]


def test_no_model_is_asked_inside_a_transaction(model):
    from django.db import transaction

    with transaction.atomic():
        assert say("Needs the NAS mounted before it starts").outcome == "created"
    assert model.asked == []


def test_what_was_prepared_before_a_transaction_is_used_in_it(model):
    from django.db import transaction

    candidate, by = Statement("maintenance", "Needs the NAS mounted before it starts", "jellyfin"), said()
    prepared = prepare(candidate, by)
    with transaction.atomic():
        remember(candidate, by, prepared=prepared)
    assert (Embedding.objects.count(), len(model.asked)) == (1, 1)


def test_what_came_between_comparing_and_storing_is_compared_too(model):
    candidate, by = Statement("maintenance", "Takes 60s to start after a restart", "jellyfin"), said()
    prepared = prepare(candidate, by)
    first = say("Takes one minute to start after a restart")
    assert remember(candidate, by, prepared=prepared).outcome == "reinforced"
    assert Memory.objects.get().pk == first.memory_id


def test_what_was_edited_between_is_compared_as_it_is_now(model):
    made = say("Takes 60s to start after a restart")
    candidate, by = Statement("maintenance", "Takes one minute to start after a restart", "jellyfin"), said()
    prepared = prepare(candidate, by)
    verbs.edit(made.memory_id, by="ann", observation="Needs the NAS mounted before it starts")
    assert remember(candidate, by, prepared=prepared).outcome == "created"


def test_what_was_deleted_between_is_not_confirmed(model):
    made = say("Takes 60s to start after a restart")
    candidate, by = Statement("maintenance", "Takes one minute to start after a restart", "jellyfin"), said()
    prepared = prepare(candidate, by)
    verbs.delete(made.memory_id, by="ann")
    assert remember(candidate, by, prepared=prepared).outcome == "created"


def test_in_a_big_scope_the_same_fact_is_found_by_its_words_and_by_its_meaning(model, monkeypatch):
    monkeypatch.setattr(candidates, "SCANNED", 5)
    monkeypatch.setattr(candidates, "CHOSEN", 3)
    for number in range(40):
        say(f"Worker {number} writes its log to volume {number} at night")
    by_words = say("Must be started after the WireGuard tunnel is up")
    by_meaning = say(KNOWN)
    compared = prepare(Statement("maintenance", AGAIN, "jellyfin"), said()).found
    assert by_meaning.memory_id in compared
    assert len(compared) <= 6
    assert say("Has to be started after the WireGuard tunnel is up").memory_id == by_words.memory_id


def test_another_scope_is_never_compared(model):
    say(KNOWN, service="caddy")
    MemoryFactory(category="timing", observation=KNOWN)
    assert prepare(Statement("maintenance", KNOWN, "jellyfin"), said()).found == {}


def test_a_vector_of_another_length_is_left_out(model):
    made = say("Takes 60s to start after a restart")
    Embedding.objects.update(vector=b"\x00" * 8)
    assert say("Takes one minute to start after a restart").memory_id == made.memory_id


def test_no_model_is_asked_on_the_way_to_the_store(settings):
    with serving(chat("{}")) as served:
        settings.CLAUDEOPS_MODEL_URL = f"{served.url}/chat/completions"
        settings.CLAUDEOPS_MODEL_JUDGE = "http:small"
        say("The nightly library scan of all media takes long on the old disks")
        assert say("The nightly library scan of all media takes long on the slow old disks").outcome == "created"
    assert served.asked == []
    assert Disagreement.objects.get().judged_at is None


def test_in_structural_mode_the_second_of_a_scope_reinforces_the_first(settings):
    settings.CLAUDEOPS_MATCHING = "structural"
    first = say("Needs the NAS mounted before it starts")
    other = say("Needs the NAS mounted before it starts", service="caddy")
    second = say("Subtitles vanish when two clients stream at once")
    assert (second.outcome, second.memory_id, second.contradicted) == ("reinforced", first.memory_id, ())
    memory = Memory.objects.get(pk=first.memory_id)
    assert (memory.observation, memory.active) == ("Needs the NAS mounted before it starts", True)
    assert memory.confidence == pytest.approx(0.8)
    change = MemoryChange.objects.filter(memory=memory).latest("pk")
    assert (change.kind, change.evidence["text"]) == ("reinforced", "Subtitles vanish when two clients stream at once")
    assert "structural" in change.reason
    assert Memory.objects.get(pk=other.memory_id).confidence == pytest.approx(0.7)
    assert (Memory.objects.count(), Disagreement.objects.exists()) == (2, False)


def test_in_structural_mode_an_inactive_memory_is_not_the_first(settings):
    settings.CLAUDEOPS_MATCHING = "structural"
    first = say("Needs the NAS mounted before it starts")
    Memory.objects.filter(pk=first.memory_id).update(active=False, inactive_reason="decayed")
    assert say("Subtitles vanish when two clients stream at once").outcome == "created"


def test_in_supersede_mode_a_new_one_takes_the_place_of_the_older(settings):
    settings.CLAUDEOPS_MATCHING = "supersede"
    first = say("Needs the NAS mounted before it starts")
    other = say("Needs the NAS mounted before it starts", service="caddy")
    second = say("Subtitles vanish when two clients stream at once")
    assert second.contradicted == (first.memory_id,)
    older = Memory.objects.get(pk=first.memory_id)
    assert (older.active, older.inactive_reason, older.superseded_by_id) == (False, "superseded", second.memory_id)
    assert MemoryChange.objects.filter(memory=older).latest("pk").kind == "superseded"
    assert Memory.objects.get(pk=other.memory_id).active
    assert say("Subtitles vanish when two clients stream at once").outcome == "reinforced"
    assert not Disagreement.objects.exists()


def test_two_processes_that_store_the_same_fact_with_vectors_at_once_make_one_row(model, tmp_path, monkeypatch):
    for name, value in (("EMBEDDINGS", "endpoint"), ("EMBEDDINGS_URL", model.url), ("EMBEDDINGS_MODEL", "words")):
        monkeypatch.setenv(f"CLAUDEOPS_{name}", value)
    assert environment()["CLAUDEOPS_EMBEDDINGS"] == "endpoint"
    texts = ("Takes 60s to start after a restart", "Takes one minute to start after a restart")
    said = [(SessionFactory().pk, f'Statement("maintenance", {text!r}, f"service-{{number}}")') for text in texts]
    pairs = zip(*remember_at_once(tmp_path, said, 15), strict=True)
    assert [sorted(pair) for pair in pairs] == [["created", "reinforced"]] * 15
    assert (Memory.objects.count(), Embedding.objects.count()) == (15, 15)
