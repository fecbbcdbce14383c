"""A worker that is really killed while it observes a transcript: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memories.models import (
    ArrivedBy,
    Fact,
    GateDecision,
    Memory,
    MemoryChange,
    ModelCall,
    PartState,
    Segment,
    Transcript,
)
from memories.observe.instructions import INSTRUCTIONS, message
from memories.observe.prepare import prepare
from sessions_app import tasks
from sessions_app.transcripts import arrivals
from sessions_app.transcripts.turns import turns_of
from tests.support.factories import ProjectFactory
from tests.support.processes import killed
from tests.support.thorough import one_of

pytestmark = pytest.mark.django_db(transaction=True)

STAGES, PIPELINE = "memories.observe.stages", "memories.observe.pipeline"
FACTS = (
    "🔴 [gate=allow confidence=0.92 category=jc:operations] The photos volume is unmounted before a snapshot is taken",
    "🟡 [gate=allow confidence=0.85 category=jc:operations] The nightly backup of the mail server takes two hours",
    "🟢 [gate=hold confidence=0.40 category=jc:projects] The shop may move to the new host in spring",
    "🟢 [gate=discard confidence=0.90 category=jc:projects] The agent then looked at the folder and read two files",
)
ANSWER = (
    "<observations><segment><narrative>The backup of the photos was moved.</narrative><facts>\n"
    + "\n".join(f"- {fact}" for fact in FACTS)
    + "\n</facts></segment></observations>"
)


@pytest.fixture
def transcript(settings, tmp_path, recordings) -> Transcript:
    settings.CLAUDEOPS_OBSERVE = True
    settings.CLAUDEOPS_DATA_DIR = tmp_path / "data"
    path = tmp_path / "home" / ".claude" / "projects" / "-srv-shop" / "0a1b2c3d-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    session = {"sessionId": path.stem, "cwd": "/srv/shop", "version": "2.1.330", "timestamp": "2026-11-20T08:00:00Z"}
    said = "Move the backup of the photos. Remember: the photos volume is unmounted before a snapshot is taken."
    model = {"id": "msg_1", "role": "assistant", "model": "claude-sonnet-5-5", "usage": {}}
    lines = [
        {**session, "type": "user", "uuid": "u1", "message": {"role": "user", "content": said}},
        {
            **session,
            "type": "assistant",
            "uuid": "a1",
            "message": {**model, "content": [{"type": "text", "text": "It is moved, and a snapshot is taken."}]},
        },
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ProjectFactory(path="/srv/shop", name="")
    seen = arrivals.see(path, arrived_by=ArrivedBy.COMMAND, ended=True)
    assert seen is not None
    part = seen.parts.get()
    recordings.say("observer", INSTRUCTIONS, message(prepare(turns_of(part)).text, project="", agent=""), ANSWER)
    return seen


def observe(settings, transcript: Transcript, event: str, module: str, function: str, nth: int) -> None:
    more = {
        "CLAUDEOPS_MODEL_OBSERVER": "recorded:haiku",
        "CLAUDEOPS_MODEL_CLASSIFIER": "recorded:haiku",
        "CLAUDEOPS_MODEL_RECORDINGS": settings.CLAUDEOPS_MODEL_RECORDINGS,
        "CLAUDEOPS_EMBEDDINGS": "off",
        "CLAUDEOPS_HOST": transcript.host,
    }
    killed("from sessions_app import tasks; tasks.observe_here()", event, module, function, nth=nth, more=more)


def expect_everything_once() -> None:
    assert Segment.objects.count() == 1
    outcomes = dict(Fact.objects.order_by("number").values_list("number", "outcome"))
    assert outcomes == {1: "created", 2: "created", 3: "held", 4: "discarded"}
    assert Memory.objects.filter(verdict="allow").count() == 2
    assert Memory.objects.filter(verdict="hold").count() == 1
    assert MemoryChange.objects.filter(kind="created").count() == MemoryChange.objects.count() == 3
    assert GateDecision.objects.count() == 4
    assert Memory.objects.filter(merged_count__gt=0).count() == 0


AFTER_EACH_STAGE = [pytest.param("return", PIPELINE, "_finish", n, id=f"after stage {n}") for n in range(1, 8)]
IN_THE_MIDDLE = [
    pytest.param("return", STAGES, "prepare_part", 1, id="prepared, not stored"),
    pytest.param("call", STAGES, "call_observer", 1, id="before the call"),
    pytest.param("return", STAGES, "_segment", 1, id="in the middle of storing the facts"),
    pytest.param("return", "memories.lifecycle.gate_decisions", "note", 2, id="in the middle of the decisions"),
    pytest.param("return", "memories.store", "remember", 1, id="a memory is stored, its fact does not know it"),
    pytest.param("return", STAGES, "_store", 2, id="between two facts"),
]


@pytest.mark.parametrize(("event", "module", "function", "nth"), one_of([*AFTER_EACH_STAGE, *IN_THE_MIDDLE]))
def test_a_worker_that_is_killed_loses_nothing_and_stores_nothing_twice(
    settings, transcript, event, module, function, nth
):
    observe(settings, transcript, event, module, function, nth)
    for _ in range(2):
        tasks.observe_here()
    assert transcript.parts.get().state == PartState.DONE
    expect_everything_once()
    assert ModelCall.objects.filter(role="observer").count() == 1


def test_a_call_whose_answer_was_not_stored_yet_is_made_again(settings, transcript):
    observe(settings, transcript, "return", STAGES, "call_observer", 1)
    tasks.observe_here()
    expect_everything_once()
    assert ModelCall.objects.filter(role="observer").count() == 2


def test_the_same_transcript_seen_again_adds_nothing(transcript):
    tasks.observe_here()
    arrivals.see(Path(transcript.path), arrived_by=ArrivedBy.HOOK, ended=True)
    tasks.observe_here()
    expect_everything_once()
    assert transcript.parts.count() == 1
