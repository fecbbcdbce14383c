"""What a session had read decides whether its words are injected: provisional, independent, echo, taint."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memories.injection import ops
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.undo import restore, undo
from memories.models import Disagreement, Memory, MemoryChange, Verdict
from memories.store import Provenance, Statement, prepare, remember
from tests.support.factories import MemoryFactory, SessionFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
TOMORROW = NOW + timedelta(days=1)
CREDENTIALS = "The broker password lies in /srv/note.txt"
PLAIN = "Takes 60s to start after a restart"
LOG, OTHER = ("logs: jellyfin",), ("logs: nginx",)


def said(exposed_to=(), **fields):
    """The provenance of a session; with sources it had read outside text."""
    fields = {"exposure": "outside" if exposed_to else "nothing", "exposed_to": exposed_to} | fields
    return Provenance("run", "agent:watcher", SessionFactory().pk, 1, agent="watcher", **fields)


def stated(text, provenance, at=NOW):
    done = remember(Statement("behavior", text, "jellyfin"), provenance, at=at)
    return Memory.objects.get(pk=done.memory_id)


def told():
    return ops.build(budget=2000).text


def test_an_exposed_session_speaks_of_credentials_and_no_prompt_is_told_so():
    waits, plain = stated(CREDENTIALS, said(LOG)), stated(PLAIN, said(LOG))
    assert (waits.exposure, waits.exposed_to, waits.provisional) == ("outside", list(LOG), "credentials")
    assert (plain.exposure, plain.provisional, plain.confirmed_at) == ("outside", "", None)
    assert PLAIN in told()
    assert "password" not in told()
    made = ops.build(budget=2000)
    assert (made.counts["eligible"], made.counts["unconfirmed"]) == (1, 1)
    assert [row["reason"] for row in made.left_out] == [
        "unconfirmed: its session had read outside text, and it is about credentials"
    ]
    assert [row.reason for row in ops.explain(budget=2000, at=NOW)][1] == made.left_out[0]["reason"]


@pytest.mark.parametrize("fields", [{}, {"exposure": "house", "exposed_to": ("docker ps",)}])
def test_a_session_that_had_read_nothing_from_outside_is_believed(fields):
    assert stated(CREDENTIALS, said(**fields)).provisional == ""
    assert "password" in told()


@pytest.mark.parametrize(("mode", "lines"), [("open", 2), ("guarded", 1), ("strict", 0)])
def test_the_setting_says_how_much_is_told(settings, mode, lines):
    settings.CLAUDEOPS_TRUST = mode
    stated(CREDENTIALS, said(LOG))
    row = stated(PLAIN, said(LOG))
    assert ops.build(budget=2000).counts["included"] == lines
    assert Memory.objects.unconfirmed().count() == 2 - lines
    verbs.approve(row.pk, by="ann")
    assert PLAIN in told()


def test_an_independent_session_confirms_on_another_day():
    row = stated(CREDENTIALS, said(LOG))
    again = stated(CREDENTIALS, said(), at=TOMORROW)
    assert again.pk == row.pk
    assert again.confirmed_at == TOMORROW
    assert "password" in told()
    assert "It confirms the memory" in MemoryChange.objects.get(kind="reinforced").reason


OBSERVED = "transcript-1"


@pytest.mark.parametrize(
    "other",
    [said, lambda: said(OTHER), lambda: replace(said(), session_id=None, origin=OBSERVED)],
    ids=["unexposed", "another source", "an observed transcript without a session of ours"],
)
def test_another_source_is_independent(other):
    stated(CREDENTIALS, said(LOG))
    assert stated(CREDENTIALS, other(), at=TOMORROW).confirmed_at == TOMORROW


@pytest.mark.parametrize(
    "change",
    [
        lambda row: {"at": NOW + timedelta(hours=3)},
        lambda row: {"said": said(told=frozenset({row.pk}))},
        lambda row: {"said": said(LOG)},
        lambda row: {"said": said((*OTHER, *LOG))},
        lambda row: {"said": said(exposure="outside")},
        lambda row: {"said": replace(said(), session_id=None)},
        lambda row: {"said": replace(said(), session_id=None, origin="session:x", channel="hook")},
        lambda row: {"said": replace(said(), session_id=row.session_id, channel="mcp")},
    ],
    ids=[
        "same day",
        "told",
        "same source",
        "also the same source",
        "unknown source",
        "no session",
        "a hook of no session",
        "itself",
    ],
)
def test_who_confirms_nothing(change):
    row = stated(CREDENTIALS, said(LOG))
    with_ = {"said": said(), "at": TOMORROW} | change(row)
    stated(CREDENTIALS, with_["said"], at=with_["at"])
    row.refresh_from_db()
    assert row.confirmed_at is None
    assert "password" not in told()


def test_a_loose_match_that_does_not_say_it_confirms_nothing(settings):
    settings.CLAUDEOPS_MATCHING = "structural"
    row = stated(CREDENTIALS, said(LOG))
    assert stated(PLAIN, said(), at=TOMORROW).pk == row.pk
    row.refresh_from_db()
    assert (row.confirmed_at, row.observation) == (None, CREDENTIALS)


def test_an_exposed_session_says_again_what_is_confirmed_and_changes_no_word_of_it():
    row = stated(CREDENTIALS, Provenance.typed_by("ann"))
    assert row.confirmed_at == NOW
    again = stated("The broker password lies in /srv/note.txt now", said(LOG), at=TOMORROW)
    assert (again.pk, again.observation, again.confirmed_at, again.provisional) == (row.pk, CREDENTIALS, NOW, "")


def test_what_waits_itself_contradicts_nothing_but_asks_a_person(settings):
    known = MemoryFactory(
        category="behavior", observation="Backups must always be deleted after 30 days", confidence=0.8
    )
    new = stated("Backups must never be deleted after 30 days", said(LOG))
    known.refresh_from_db()
    assert (new.provisional != "", known.confidence) == (True, 0.8)
    assert Disagreement.objects.filter(older=known, newer=new).exists()
    settings.CLAUDEOPS_MATCHING = "supersede"
    stated("The broker password changed to /srv/b.txt", said(LOG))
    known.refresh_from_db()
    assert known.active
    settings.CLAUDEOPS_TRUST = "open"
    stated("The broker password changed to /srv/c.txt", said(LOG))
    known.refresh_from_db()
    assert not known.active


def test_an_echo_raises_to_09_and_no_further():
    row = MemoryFactory(category="behavior", observation=PLAIN, confidence=0.85, updated_at=NOW - timedelta(days=9))
    again = stated(PLAIN, said(told=frozenset({row.pk})), at=NOW)
    assert (again.pk, again.confidence, again.updated_at) == (row.pk, 0.9, NOW)
    assert stated(PLAIN, said(), at=NOW).confidence == 1.0
    later = stated(PLAIN, said(told=frozenset({row.pk})), at=TOMORROW)
    assert (later.confidence, later.updated_at) == (1.0, NOW)  # above 0.9 an echo stops no decay either
    assert "up to a confidence of 0.9" in MemoryChange.objects.filter(memory=row).latest("pk").reason


def test_what_is_not_the_sessions_own_words_is_held_and_stays_held():
    tainted = said(LOG, taint="repeats a tool result of its session")
    assert prepare(Statement("behavior", PLAIN, "jellyfin"), tainted).vector is None
    row = stated(PLAIN, tainted)
    assert (row.verdict, row.verdict_reason) == (Verdict.HOLD, "repeats a tool result of its session")
    again = remember(Statement("behavior", PLAIN, "jellyfin"), said(), at=TOMORROW)
    assert (again.outcome, again.memory_id, Memory.objects.count()) == ("held", row.pk, 1)
    assert "waits for review already" in again.reason


def test_an_approval_confirms_and_its_undo_takes_the_confirmation_back():
    row = stated(CREDENTIALS, said(LOG))
    change = verbs.approve(row.pk, by="ann", at=TOMORROW)
    assert "password" in told()
    restore(row.pk, change, by="ann")
    row.refresh_from_db()
    assert (row.confirmed_at, row.approved_at) == (None, None)
    assert "password" not in told()


def test_a_person_approves_many_at_once_a_token_none_and_an_undo_takes_it_back():
    rows = [stated(f"{CREDENTIALS} {n}0 meters deep", said(LOG)) for n in range(1, 3)]
    queryset = Memory.objects.filter(pk__in=[row.pk for row in rows])
    with pytest.raises(Exception, match="Only a person approves"):
        BULK_ACTIONS["approve"].run(queryset, by="token x", provenance=said())
    done = BULK_ACTIONS["approve"].run(queryset, by="ann", provenance=Provenance.typed_by("ann"))
    assert (done.changed, Memory.objects.unconfirmed().count()) == (len(rows), 0)
    undo(done.change, by="ann")
    assert Memory.objects.unconfirmed().count() == len(rows)


def test_only_a_persons_edit_confirms():
    row = stated(CREDENTIALS, said(LOG))
    verbs.edit(row.pk, by="token x", observation="The broker password lies in /srv/other.txt", confidence=1.0)
    row.refresh_from_db()
    assert (row.confirmed_at, row.provisional) == (None, "credentials")
    verbs.edit(row.pk, by="ann", confidence=0.8, provenance=Provenance.typed_by("ann"))
    row.refresh_from_db()
    assert row.confirmed_at is not None
    verbs.edit(row.pk, by="token x", observation="The broker password lies in /srv/third.txt")
    row.refresh_from_db()
    assert row.confirmed_at is None
    assert "password" not in told()


def test_a_merge_gives_no_confirmed_memory_the_words_of_one_that_waits():
    waits = stated(CREDENTIALS, said(LOG))
    into = MemoryFactory(category="behavior", agent="watcher", observation=PLAIN, confirmed_at=NOW)
    merge = {"target": into.pk, "observation": CREDENTIALS}
    queryset = Memory.objects.filter(pk__in=(waits.pk, into.pk))
    done = BULK_ACTIONS["merge"].run(queryset, by="token x", provenance=said(), **merge)
    into.refresh_from_db()
    assert (into.observation, into.confirmed_at, into.provisional) == (CREDENTIALS, None, "credentials")
    assert "password" not in told()
    undo(done.change, by="ann")
    into.refresh_from_db()
    assert (into.observation, into.confirmed_at, into.provisional) == (PLAIN, NOW, "")
    BULK_ACTIONS["merge"].run(queryset, by="ann", provenance=Provenance.typed_by("ann"), **merge)
    assert "password" in told()
