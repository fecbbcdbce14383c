"""The policy of the knowledge taxonomy: merged, superseded, provisional after outside text, never decayed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memories.errors import InvalidMemory
from memories.lifecycle import verbs
from memories.lifecycle.sweep import sweep
from memories.lifecycle.undo import restore, undo
from memories.models import Disagreement, Inactive, Memory, MemoryChange
from memories.store import Provenance, Statement, remember
from tests.support.factories import MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
LATER, TOMORROW = NOW + timedelta(hours=1), NOW + timedelta(days=1)
TAKES_60S = "The staging database takes 60s to start after a restart"
TAKES_ABOUT_60S = "The staging database takes about 60 seconds to start after a restart"
TAKES_5_MINUTES = "The staging database takes 5 minutes to start after a restart"
UNRELATED = "Ann wants commit messages in the imperative"
LOG, OTHER = ("WebFetch: example.org",), ("Bash: curl",)


def said(origin="session:one", exposed_to=(), **fields):
    """The provenance of a fact from a developer's transcript; with sources it had read outside text."""
    fields = {"exposure": "outside" if exposed_to else "nothing", "exposed_to": exposed_to} | fields
    return Provenance("run", origin, channel="observer", origin=origin, **fields)


def fact(text, confidence=0.8, category="operations"):
    return Statement(category, text, taxonomy="knowledge", confidence=confidence)


def learned(text, provenance=None, at=NOW, **fields):
    done = remember(fact(text, **fields), provenance or said(), at=at)
    return done, Memory.objects.get(pk=done.memory_id)


def test_a_new_fact_has_the_confidence_of_the_gate():
    done, memory = learned(TAKES_60S, confidence=0.92)
    assert (done.outcome, memory.taxonomy, memory.confidence, memory.merged_count) == ("created", "knowledge", 0.92, 0)
    assert memory.changes.get().evidence == {"channel": "observer", "origin": "session:one"}


@pytest.mark.parametrize(("second", "after"), [(0.6, 0.8), (0.95, 0.95)])
def test_a_restatement_is_merged_with_a_fresh_time_and_the_higher_confidence(second, after):
    _, first = learned(TAKES_60S)
    done, memory = learned(TAKES_ABOUT_60S, said("session:two"), at=TOMORROW, confidence=second)
    assert (done.outcome, memory.pk) == ("reinforced", first.pk)
    assert (memory.merged_count, memory.updated_at, memory.confidence) == (1, TOMORROW, after)
    assert memory.observation == TAKES_60S
    assert Memory.objects.count() == 1


def test_categories_of_a_project_are_one_scope_and_projects_are_not():
    _, first = learned(TAKES_60S)
    done, _ = learned(TAKES_ABOUT_60S, said("session:two"), category="system-architecture")
    assert (done.outcome, done.memory_id) == ("reinforced", first.pk)
    project = ProjectFactory()
    done, _ = learned(TAKES_ABOUT_60S, said("session:two", project_id=project.pk))
    assert done.outcome == "created"


@pytest.mark.parametrize("text", [TAKES_60S, TAKES_ABOUT_60S])
def test_what_one_transcript_says_twice_counts_once(text):
    learned(TAKES_60S)
    done, memory = learned(text, at=LATER)
    assert (done.outcome, memory.merged_count) == ("duplicate", 0)


def test_a_session_of_ours_counts_once_too():
    session = SessionFactory()
    learned(TAKES_60S, said(session_id=session.pk))
    done, memory = learned(TAKES_ABOUT_60S, said(session_id=session.pk))
    assert (done.outcome, memory.merged_count) == ("duplicate", 0)


def test_a_session_that_was_told_it_neither_counts_nor_refreshes_it():
    _, first = learned(TAKES_60S)
    told = said("session:two", told=frozenset({first.pk}))
    _, memory = learned(TAKES_ABOUT_60S, told, at=TOMORROW, confidence=1.0)
    assert (memory.merged_count, memory.updated_at, memory.confidence) == (0, NOW, 0.8)
    assert "counts for nothing" in MemoryChange.objects.get(kind="reinforced").reason


def test_a_merge_is_taken_back():
    _, first = learned(TAKES_60S)
    learned(TAKES_ABOUT_60S, said("session:two"), at=TOMORROW, confidence=0.9)
    restore(first.pk, MemoryChange.objects.get(kind="reinforced"), by="ann")
    first.refresh_from_db()
    assert (first.merged_count, first.updated_at, first.confidence) == (0, NOW, 0.8)


def test_a_contradiction_supersedes_the_older_and_is_taken_back():
    _, older = learned(TAKES_60S)
    done, newer = learned(TAKES_5_MINUTES, said("session:two"), at=TOMORROW)
    assert (done.outcome, done.contradicted) == ("created", (older.pk,))
    older.refresh_from_db()
    assert (older.active, older.inactive_reason, older.superseded_by_id) == (False, Inactive.SUPERSEDED, newer.pk)
    assert older.confidence == 0.8
    assert Disagreement.objects.open().count() == 0
    change = MemoryChange.objects.get(kind="superseded")
    assert change.evidence["text"] == TAKES_5_MINUTES
    restore(older.pk, change, by="ann")
    older.refresh_from_db()
    assert (older.active, older.superseded_by_id) == (True, None)
    assert Disagreement.objects.open().count() == 1


def person_confirmed(row):
    verbs.confirm(row.pk, by="ann")


def person_edited(row):
    verbs.edit(row.pk, by="ann", tags=["db"], provenance=Provenance.typed_by("ann"))


def person_approved(row):
    verbs.approve(row.pk, by="ann")


@pytest.mark.parametrize("act", [person_confirmed, person_edited, person_approved])
def test_what_a_person_confirmed_stays_and_a_question_is_opened(act):
    _, older = learned(TAKES_60S)
    act(older)
    done, newer = learned(TAKES_5_MINUTES, said("session:two"), at=TOMORROW)
    older.refresh_from_db()
    assert (done.contradicted, older.active, newer.active) == ((), True, True)
    assert Disagreement.objects.open().get().newer_id == newer.pk


def test_what_a_person_wrote_stays():
    remember(fact(TAKES_60S), Provenance.typed_by("ann"), at=NOW)
    done, _ = learned(TAKES_5_MINUTES)
    assert (done.contradicted, Disagreement.objects.open().count()) == ((), 1)


@pytest.mark.parametrize(
    ("mode", "older", "newer"),
    [
        ("guarded", {}, {"exposed_to": LOG}),
        ("open", {}, {"exposed_to": LOG}),
        ("strict", {}, {}),
        ("guarded", {"trust": "operator"}, {}),
    ],
    ids=["provisional", "provisional, all trusted", "nothing is told", "of lower trust"],
)
def test_what_is_weaker_supersedes_nothing(settings, mode, older, newer):
    settings.CLAUDEOPS_TRUST = mode
    row = MemoryFactory(
        taxonomy="knowledge", category="operations", service=None, observation=TAKES_60S, source="run", **older
    )
    done, _ = learned(TAKES_5_MINUTES, said("session:two", **newer))
    row.refresh_from_db()
    assert (done.contradicted, row.active) == ((), True)
    assert Disagreement.objects.open().count() == 1


def test_an_old_transcript_supersedes_nothing_that_was_said_since():
    _, known = learned(TAKES_60S)
    done, old = learned(TAKES_5_MINUTES, said("session:two"), at=NOW - timedelta(days=30))
    known.refresh_from_db()
    assert (done.outcome, done.contradicted, known.active, old.active) == ("created", (), True, True)
    assert Disagreement.objects.open().count() == 1


def test_a_memory_that_was_deactivated_supersedes_nothing():
    _, older = learned(TAKES_60S)
    verbs.deactivate(older.pk, by="ann")
    _, newer = learned(TAKES_5_MINUTES, said("session:two"))
    learned(TAKES_ABOUT_60S, said("session:three"), at=TOMORROW)
    newer.refresh_from_db()
    assert newer.active


def test_a_fact_from_a_session_that_had_read_outside_text_is_provisional():
    _, memory = learned(TAKES_60S, said(exposed_to=LOG))
    assert memory.provisional == "from a session that had read outside text"
    assert memory.trust == "external"
    assert memory.unconfirmed == "unconfirmed: its session had read outside text"
    assert not Memory.objects.trusted().exists()
    _, memory = learned("The broker password lies in /srv/note.txt", said(exposed_to=LOG))
    assert memory.provisional == "from a session that had read outside text; credentials"
    assert memory.unconfirmed.endswith("had read outside text, and it is about credentials")


@pytest.mark.parametrize(
    ("again", "at", "confirmed"),
    [
        (said("session:two"), TOMORROW, True),
        (said("session:two", exposed_to=OTHER), TOMORROW, True),
        (said("session:two", exposed_to=LOG), TOMORROW, False),
        (said("session:two"), LATER, False),
        (said("session:one"), TOMORROW, False),
        (replace(said("session:one"), session_id=0), TOMORROW, False),
        (Provenance("run", "agent:x", channel="api"), TOMORROW, False),
    ],
    ids=["another", "another source", "the same source", "the same day", "itself", "itself, its row", "nobody"],
)
def test_another_session_confirms_on_another_day(again, at, confirmed):
    learned(TAKES_60S, said(exposed_to=LOG))
    if again.session_id is not None:
        again = replace(again, session_id=SessionFactory().pk)
    _, memory = learned(TAKES_60S, again, at=at)
    assert (memory.confirmed_at is not None) is confirmed


def test_a_person_releases_a_provisional_fact():
    _, memory = learned(TAKES_60S, said(exposed_to=LOG))
    verbs.approve(memory.pk, by="ann")
    assert Memory.objects.trusted().get() == memory


def test_nothing_fades():
    _, memory = learned(TAKES_60S)
    sweep(NOW + timedelta(days=400))
    memory.refresh_from_db()
    assert (memory.confidence, memory.active) == (0.8, True)


@pytest.mark.parametrize("way", ["structural", "supersede"])
def test_the_settings_that_take_a_scope_for_one_subject_do_not_hold(settings, way):
    settings.CLAUDEOPS_MATCHING = way
    _, first = learned(TAKES_60S)
    done, _ = learned(UNRELATED, said("session:two"))
    remember(fact("Ann reviews releases on Fridays"), Provenance.typed_by("ann"), at=LATER)
    first.refresh_from_db()
    assert (done.outcome, first.active, Memory.objects.active().count()) == ("created", True, 3)


def test_the_facts_of_one_moment_are_no_action_to_undo():
    learned(TAKES_60S)
    learned(TAKES_ABOUT_60S, said("session:two"), at=TOMORROW)
    with pytest.raises(InvalidMemory):
        undo(MemoryChange.objects.get(kind="reinforced"), by="ann")


# Trust: the lowest of the lineage, where texts are joined.


def test_a_person_who_edits_the_text_makes_it_an_operators():
    _, memory = learned(TAKES_60S, said(exposed_to=LOG))
    verbs.edit(memory.pk, by="ann", tags=["db"], provenance=Provenance.typed_by("ann"))
    memory.refresh_from_db()
    assert memory.trust == "external"
    change = verbs.edit(memory.pk, by="ann", observation=UNRELATED, provenance=Provenance.typed_by("ann"))
    memory.refresh_from_db()
    assert memory.trust == "operator"
    restore(memory.pk, change, by="ann")
    memory.refresh_from_db()
    assert memory.trust == "external"


@pytest.mark.parametrize(
    ("provenance", "trust"),
    [(said(), "session"), (said(exposed_to=LOG), "external"), (None, "imported")],
    ids=["a session", "exposed", "unknown"],
)
def test_an_edit_of_anybody_else_is_trusted_as_the_least_of_both(provenance, trust):
    remember(fact(TAKES_60S), Provenance.typed_by("ann"), at=NOW)
    memory = Memory.objects.get()
    assert memory.trust == "operator"
    verbs.edit(memory, by="x", observation=UNRELATED, provenance=provenance)
    assert memory.trust == trust


def test_a_restatement_leaves_the_trust_of_the_text():
    _, memory = learned(TAKES_60S)
    learned(TAKES_ABOUT_60S, said("session:two", exposed_to=LOG), at=TOMORROW)
    memory.refresh_from_db()
    assert (memory.trust, memory.provisional) == ("session", "")


@pytest.mark.parametrize(
    ("text", "provenance", "trust"),
    [
        (None, None, "session"),
        ("Both: it takes a minute and needs a disk", said(), "external"),
        ("Both: it takes a minute and needs a disk", Provenance.typed_by("ann"), "operator"),
    ],
    ids=["the target's own text", "a joined text", "a person's text"],
)
def test_a_merge_with_a_joined_text_takes_the_lowest(text, provenance, trust):
    _, target = learned(TAKES_60S)
    _, other = learned(UNRELATED, said("session:two", exposed_to=LOG))
    verbs.merge(target, [other], by="ann", observation=text, provenance=provenance)
    assert target.trust == trust
    undo(MemoryChange.objects.filter(kind="merged").first(), by="ann")
    target.refresh_from_db()
    assert target.trust == "session"
