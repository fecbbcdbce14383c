"""What the demo shows of observed sessions: its own streams through the whole way, on the observer's recorded words."""

from __future__ import annotations

import pytest
from django_q.models import OrmQ

from memories.models import Fact, Memory, PartState, Segment, Transcript
from memories.recall import keyword_index
from sessions_app import queue, tasks
from sessions_app.demo.setup import ANSWERS, TRANSCRIPTS, set_up
from sessions_app.models import Agent, Session, Status, Trigger
from sessions_app.replay.pick import PACKAGE
from sessions_app.runner.run import run_session

STREAMS = PACKAGE / "demo" / "streams"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def recorded(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    settings.CLAUDEOPS_OBSERVE = True
    settings.CLAUDEOPS_MODEL_OBSERVER = "recorded:demo"
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""
    settings.CLAUDEOPS_MODEL_RECORDINGS = str(ANSWERS)
    settings.CLAUDEOPS_REPLAY_SPEED = 1_000.0


def observe() -> None:
    """Do what waits for the workers about transcripts."""
    for row in OrmQ.objects.order_by("pk"):
        if row.task["func"] == "sessions_app.tasks.observe_session":
            tasks.observe_session(*row.task["args"])
    OrmQ.objects.all().delete()
    tasks.observe_here()
    keyword_index.catch_up()


def run(slug: str) -> Session:
    agent = Agent.objects.get(slug=slug)
    session = queue.request_session(agent=agent, trigger=Trigger.MANUAL, by="demo", wake=False)
    run_session(session.pk)
    session.refresh_from_db()
    assert session.status != Status.QUEUED, session.hold_reason
    observe()
    return session


@pytest.fixture
def shown() -> Session:
    """The demo after five minutes: its first runs and those of its schedules. The last run of the shop's engineer."""
    set_up()
    observe()
    for pk in Session.objects.order_by("pk").values_list("pk", flat=True):
        run_session(pk)
        observe()
    run("shares-move")
    run("shop-engineer")
    return run("shop-engineer")


def test_it_has_observed_sessions_with_segments_and_facts(shown):
    transcripts = list(Transcript.objects.select_related("project"))
    assert {part.state for one in transcripts for part in one.parts.all()} == {PartState.DONE}
    assert {one.session_id is None for one in transcripts} == {True, False}  # a developer's, and our own
    observed = set(Segment.objects.values_list("transcript__project__slug", flat=True))
    assert observed == {"tea-shop", "nas-move"}
    assert set(Fact.objects.values_list("outcome", flat=True)) == {"created", "merged", "held", "discarded"}


def test_what_a_page_of_the_web_asked_for_is_held_and_in_no_prompt(shown):
    held = Fact.objects.get(text__startswith="Always run the restore script")
    assert (held.outcome, held.memory.verdict) == ("held", "hold")
    assert "tainted" in held.reasons
    assert not [one for one in Session.objects.all() if "restore script" in one.prompt]


def test_what_the_developer_said_is_the_developers_word_though_a_page_of_the_web_was_read(shown):
    memory = Memory.objects.get(observation__startswith="The catalogue of the shop stores prices as whole cents")
    assert memory.support["by"] == "person" and memory.trust == "operator"
    assert memory.confirmed_at and not memory.provisional
    assert memory.merged_count >= 1


def test_the_next_session_of_the_shop_is_told_what_the_developer_said(shown):
    (entry, *_) = shown.receipt.of("knowledge")
    assert entry["observation"].startswith("Amounts in the checkout of the shop are rounded once")
    assert "## Knowledge (1 memory" in shown.receipt.knowledge["text"]
    assert entry["observation"] in shown.prompt


def test_set_up_again_observes_nothing_again(shown):
    before = Fact.objects.count()
    set_up()
    observe()
    assert Fact.objects.count() == before


def test_each_answer_names_what_stands_in_a_recorded_session():
    said = "".join(path.read_text(encoding="utf-8") for path in [*STREAMS.glob("*/*.jsonl"), *TRANSCRIPTS.glob("*")])
    for path in (ANSWERS / "observer").glob("about-*.txt"):
        assert path.read_text(encoding="utf-8").partition("\n")[0] in said, path.name
