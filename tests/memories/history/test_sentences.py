"""A change in one sentence: each kind, what is quoted, and what moved."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.history.sentences import QUOTED, REASON, Part, folded_decay, moved, plain, sentence
from memories.models import Change, MemoryChange
from memories.store import ECHO, TOLD

AT = datetime(2026, 11, 12, 9, tzinfo=UTC)


def change(kind, *, before=None, after=None, **given) -> MemoryChange:
    return MemoryChange(kind=kind, at=AT, before=before or {}, after=after or {}, **given)


FROM = {"confidence": 0.55}
TO = {"confidence": 0.45}
STALE = {"maintenance": 3, "step": "stale"}
CLOSED = {"maintenance": 3, "step": "closed"}


def test_each_kind_of_change_is_one_sentence(subtests):
    for made, said in [
        (
            change("created", after={"source": "run"}, actor="agent:watch", session_id=412),
            "Session 412 of watch created it.",
        ),
        (change("created", after={"source": "human"}, actor="operator"), "operator created it."),
        (change("created", after={"source": "import"}, actor="bob"), "An import by bob created it."),
        (
            change(
                "created",
                after={"source": "run", "verdict": "hold", "verdict_reason": "talks to the model"},
                session_id=3,
            ),
            "Session 3 created it; it is held: talks to the model.",
        ),
        (change("created", after={"source": "run"}, actor="agent:watch"), "A session of watch created it."),
        (change("reinforced", before=FROM, after={"confidence": 0.65}, session_id=7), "Session 7 confirmed it."),
        (
            change("reinforced", session_id=7, reason=f"Said again in session 7. {ECHO}Same."),
            "Session 7 confirmed it; it was told it, so it raises it to 0.90 at most.",
        ),
        (change("reinforced", actor="ann"), "ann confirmed it; the confidence stays."),
        (
            change("reinforced", actor="session:1a2b3c4d-5e6f", after={"merged_count": 2}),
            "The session 1a2b3c4d said it again, which is merged into it.",
        ),
        (
            change("reinforced", session_id=7, reason=f"Said again in session 7. {TOLD}Same."),
            "Session 7 said it again; it was told it, so that counts for nothing.",
        ),
        (
            change(
                "reinforced",
                before={"active": False, "confidence": 0.25},
                after={"active": True, "confidence": 0.35},
                session_id=7,
            ),
            "Session 7 confirmed it; it is active again.",
        ),
        (
            change("contradicted", before=FROM, after=TO, session_id=8, evidence={"by": 30, "text": "Takes\n20 s"}),
            "Session 8 contradicted it by memory 30: “Takes 20 s”.",
        ),
        (
            change("contradicted", before={"active": True}, after={"active": False}, actor="ann"),
            "ann contradicted it; since then it is inactive.",
        ),
        (
            change(
                "decayed",
                before=FROM,
                after=TO,
                actor="system",
                reason="1 × 0.1 taken: not confirmed since 2026-10-20.",
            ),
            "Time lowered it from 0.55 to 0.45: not confirmed for 23 days.",
        ),
        (
            change("decayed", before=FROM | {"active": True}, after=TO | {"active": False}, reason="odd"),
            "Time lowered it from 0.55 to 0.45; since then it is inactive.",
        ),
        (change("expired", reason="It has expired."), "It expired; since then it is inactive."),
        (
            change(
                "decayed",
                after={"stale_at": "2026-11-12T09:00:00Z"},
                reason="Stale: never recalled nor told, and not confirmed since 2026-08-14.",
                evidence=STALE,
            ),
            "The maintenance marked it as stale: never recalled nor told, not confirmed for 90 days.",
        ),
        (
            change(
                "expired",
                before={"active": True},
                after={"active": False},
                reason="Closed: stale since 2026-11-02, and not confirmed since 2026-05-16.",
                evidence=CLOSED,
            ),
            "The maintenance closed it: stale for 10 days, not confirmed for 180 days; since then it is inactive.",
        ),
        (change("expired", reason="odd", evidence=CLOSED), "The maintenance closed it."),
        (
            change("expired", reason="It has expired.", evidence={"maintenance": 3, "step": "expired"}),
            "It expired; since then it is inactive.",
        ),
        (
            change(
                "edited", before={"observation": "Takes 60 s"}, after={"observation": "Takes 60 to 90 s"}, actor="ann"
            ),
            "ann added “to 90”.",
        ),
        (
            change("edited", before={"observation": "Takes 60 s"}, after={"observation": "Takes 90 s"}, actor="ann"),
            "ann changed “60” to “90”.",
        ),
        (
            change(
                "edited", before={"observation": "Takes 60 s now"}, after={"observation": "Takes 60 s"}, actor="ann"
            ),
            "ann removed “now”.",
        ),
        (
            change("edited", before={"observation": "One"}, after={"observation": "Wholly other"}, actor="ann"),
            "ann changed the text to “Wholly other”.",
        ),
        (
            change(
                "edited",
                before={"service": None, "confidence": 0.5, "persistent": False, "tags": []},
                after={"service": "caddy", "confidence": 0.7, "persistent": True, "tags": ["a", "b"]},
                actor="ann",
            ),
            "ann changed the service from general to caddy, changed the confidence from 0.50 to 0.70, "
            "changed the tags from none to a, b and exempted it from fading.",
        ),
        (
            change(
                "edited", before={"expires_at": None}, after={"expires_at": "2027-01-02T03:04:05+00:00"}, actor="ann"
            ),
            "ann set its end to 2027-01-02.",
        ),
        (change("edited", before={"updated_at": "a"}, after={"updated_at": "b"}, actor="ann"), "ann edited it."),
        (change("confidence_set", before=FROM, after=TO, actor="ann"), "ann set the confidence from 0.55 to 0.45."),
        (change("deactivated", actor="ann", reason="Gone since May."), "ann deactivated it: Gone since May."),
        (change("deactivated", actor="ann", reason="Rejected in review."), "ann rejected it in review."),
        (
            change("deactivated", actor="ann", reason="Rejected in review. Nonsense"),
            "ann rejected it in review: Nonsense.",
        ),
        (change("reactivated", actor="ann"), "ann activated it again."),
        (change("persistent_set", after={"persistent": True}, actor="ann"), "ann exempted it from fading."),
        (change("persistent_set", after={"persistent": False}, actor="ann"), "ann let it fade again."),
        (change("approved", actor="ann"), "ann approved it."),
        (change("merged", actor="ann", evidence={"into": 5}), "ann merged it into memory 5."),
        (change("merged", actor="ann", evidence={"count": 3, "merged": []}), "ann merged 3 memories into it."),
        (change("superseded", actor="", evidence={"by": 9}), "Somebody replaced it by memory 9."),
        (
            change("backed", actor="ann", reason="It supersedes memory 5."),
            "ann confirmed it: it supersedes memory 5.",
        ),
        (
            change("restored", actor="ann", reason="Back to before it was edited."),
            "ann put it back to before it was edited.",
        ),
        (change("restored", actor="ann", reason="My own reason"), "ann restored an earlier state: My own reason."),
        (change("deleted", actor="system", reason=""), "The system deleted it."),
    ]:
        with subtests.test(str(made)):
            assert plain(sentence(made)) == said


def test_every_kind_has_a_sentence_of_its_own_and_an_unknown_one_is_told_too():
    said = {kind: plain(sentence(change(kind, actor="ann"))) for kind in Change.values}
    assert len(set(said.values())) >= len(said) - 1  # backed and reinforced are both a confirmation
    assert plain(sentence(change("odd", actor="ann", reason="Why"))) == "ann changed it: Why."


def test_sessions_and_memories_are_links_by_their_id_and_never_by_a_text():
    made = change("contradicted", session_id=8, evidence={"by": 30, "text": "x"})
    links = [part for part in sentence(made) if part.kind]
    assert links == [Part("Session 8", "session", 8), Part("memory 30", "memory", 30)]
    odd = change("merged", actor="ann", evidence={"into": "<a href=x>"})
    assert plain(sentence(odd)) == "ann merged it into another memory."


@pytest.mark.parametrize(
    ("made", "text", "level"),
    [
        (change("created", after={"confidence": 0.7}), "0.70", ""),
        (change("reinforced", before=TO, after=FROM), "+0.10", "ok"),
        (change("decayed", before=FROM, after=TO), "−0.10", "bad"),
        (change("edited", before={"tags": []}, after={"tags": ["a"]}), "", ""),
        (change("edited", before={"confidence": "x"}, after=TO), "", ""),
    ],
)
def test_what_moved_stands_beside_the_sentence_with_its_sign(made, text, level):
    assert (moved(made).text, moved(made).level) == (text, level)


def test_decays_in_a_row_are_one_sentence():
    latest_first = [
        change(
            "decayed", before={"confidence": 0.55}, after={"confidence": 0.45}, reason="not confirmed since 2026-10-20."
        ),
        change("decayed", before={"confidence": 0.65}, after={"confidence": 0.55}),
        change("decayed", before={"confidence": 0.75}, after={"confidence": 0.65}),
    ]
    assert folded_decay(latest_first) == "Time lowered it 3 times from 0.75 to 0.45: not confirmed for 23 days."


TEXT = st.text(max_size=4_000)


@given(text=TEXT, reason=TEXT, actor=st.text(max_size=150), kind=st.sampled_from(Change.values))
def test_whatever_was_said_a_sentence_is_one_short_line(text, reason, actor, kind):
    made = change(
        kind,
        before={"observation": "Takes 60 s", "service": None},
        after={"observation": text, "service": text, "verdict": "hold", "verdict_reason": reason},
        reason=reason,
        actor=actor,
        evidence={"text": text, "by": text, "into": text, "count": text},
    )
    said = plain(sentence(made))
    assert len(said) <= len(actor) + 4 * QUOTED + REASON + 200
    assert said.endswith(".")
    assert "\n" not in said.replace(actor, "")
