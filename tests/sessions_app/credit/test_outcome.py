"""Used memories: kept for what a session was shown, credited once by how it ended."""

from __future__ import annotations

import json
import threading

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.history.sentences import plain, sentence
from memories.lifecycle.undo import restore
from memories.models import Change, Inactive, Memory, MemoryChange, Recalled
from memories.models.project import UsedMeans
from sessions_app import reaper
from sessions_app.credit import outcome
from sessions_app.credit.notes import note
from sessions_app.credit.outcome import settle, settle_all
from sessions_app.models import How, Injected, Session, Status, Trigger, UsedMemory
from sessions_app.queries.training import training_lines
from sessions_app.runner import run
from sessions_app.runner.outcome import EndedBy
from tests.sessions_app.runner.test_ingest import a_session, feed
from tests.support.factories import MemoryFactory, ProjectFactory, SessionFactory
from tests.support.streams import init, result, text, tool_use

pytestmark = pytest.mark.django_db

OBSERVATION = "Jellyfin takes sixty seconds after every restart before health checks succeed"


RECALL = tool_use(name="mcp__claudeops__recall")


def project_memory(project, **fields) -> Memory:
    values = {"taxonomy": "project", "category": "pattern", "service": None, "confidence": 0.5}
    return MemoryFactory(project=project, **{**values, **fields})


def in_project(**fields) -> tuple[Session, Memory]:
    """A running session and a memory in its prompt."""
    project = ProjectFactory(**fields)
    session = a_session(project=project)
    memory = project_memory(project)
    Injected.objects.create(session=session, memory_id=memory.pk)
    return session, memory


def recalled(session: Session, *memories: Memory) -> None:
    Recalled.objects.create(query="x", hits=[[row.pk, 0.9] for row in memories], surface="mcp", session=session)


def uses(session: Session) -> dict[int, str]:
    return dict(UsedMemory.objects.filter(session=session).values_list("memory_id", "how"))


def confidence(memory: Memory) -> float:
    return Memory.objects.get(pk=memory.pk).confidence


# -- what is used ------------------------------------------------------------------------------------------------


def test_a_session_uses_a_memory_once():
    session = SessionFactory()
    UsedMemory.objects.create(session=session, memory_id=42, how=How.NAMED)
    with pytest.raises(IntegrityError), transaction.atomic():
        UsedMemory.objects.create(session=session, memory_id=42, how=How.QUOTED)
    assert UsedMemory.objects.get().helped is None
    assert note(session.pk, {42: How.NAMED, 43: How.NAMED}) == 1


def test_what_was_left_uncredited_is_found_in_its_index():
    plan = UsedMemory.objects.filter(credited_at=None).values("session").order_by("session").explain()
    if connection.vendor == "sqlite":
        assert "used_memories_uncredited" in plan


def test_a_memory_in_the_prompt_is_used_when_the_text_or_the_answer_names_it():
    session, memory = in_project()
    other = project_memory(session.project)
    Injected.objects.create(session=session, memory_id=other.pk)
    unused = project_memory(session.project)
    Injected.objects.create(session=session, memory_id=unused.pk)
    answer = {"summary": "x", "memories_used": [other.pk, "7", None]}
    feed(session, init(), text(f"As [m{memory.pk}] says."), result(structured_output=answer))
    assert uses(session) == {memory.pk: "named", other.pk: "answered"}
    assert (session.stats["memories_used"], session.stats["structured_dropped"]) == (2, 2)


def test_knowledge_in_the_prompt_is_used_when_it_is_named_and_its_confidence_stays():
    session, _ = in_project()
    known = project_memory(session.project, taxonomy="knowledge", category="operations")
    Injected.objects.create(session=session, memory_id=known.pk)
    feed(session, init(), text(f"As [m{known.pk}] says."), result())
    assert uses(session) == {known.pk: "named"}
    run.close(session.pk, Status.COMPLETED, "Done.")
    assert UsedMemory.objects.get().helped is True
    assert confidence(known) == 0.5


def test_an_invented_or_foreign_id_does_nothing_and_is_counted():
    session, memory = in_project()
    foreign = project_memory(ProjectFactory())
    feed(session, init(), text(f"See [m{foreign.pk}], [m999999], [m{2**63 - 1}] and [m{2**64}]."), result())
    assert uses(session) == {}
    assert session.stats["used_not_shown"] == 3
    run.close(session.pk, Status.COMPLETED, "Done.")
    assert (confidence(memory), confidence(foreign)) == (0.5, 0.5)


def test_what_a_recall_brought_is_used_when_it_is_quoted_or_named_afterwards():
    session, _ = in_project()
    quoted, named, silent = (project_memory(session.project, observation=f"{OBSERVATION}{n}") for n in ("", " x", " y"))
    Memory.objects.filter(pk__in=[named.pk, silent.pk]).update(observation="Something else entirely was known about it")
    recalled(session, quoted, named, silent)
    feed(session, init(), RECALL, text(f"{OBSERVATION}, so I waited. Also [m{named.pk}]."))
    assert uses(session) == {named.pk: "named", quoted.pk: "quoted"}


def test_the_words_of_a_memory_that_no_recall_brought_are_no_use_of_it():
    session, memory = in_project()
    Memory.objects.filter(pk=memory.pk).update(observation=OBSERVATION)
    other = project_memory(session.project, observation="Another memory that a recall brought for the session")
    feed(session, init(), text(OBSERVATION, seconds=-(10**8)))
    recalled(session, other)
    feed(session, RECALL, text(other.observation, seconds=-(10**8)))  # said before the recall
    assert uses(session) == {}


def test_a_log_that_is_read_again_counts_once():
    session, memory = in_project()
    feed(session, init(), text(f"[m{memory.pk}]"), text(f"Again [m{memory.pk}]"))
    Session.objects.filter(pk=session.pk).update(ingest_offset=0, ingest_state={}, stats={})
    feed(session)
    assert UsedMemory.objects.count() == 1


def test_an_imported_log_is_shown_nothing():
    session, memory = in_project()
    Session.objects.filter(pk=session.pk).update(trigger=Trigger.IMPORT)
    feed(session, init(), text(f"[m{memory.pk}]"))
    assert uses(session) == {}
    run.close(session.pk, Status.COMPLETED, "Done.")
    assert confidence(memory) == 0.5


# -- what its end says -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "after", "helped"),
    [
        (Status.COMPLETED, 0.6, True),
        (Status.FAILED, 0.4, False),
        (Status.TIMED_OUT, 0.5, None),
        (Status.STOPPED, 0.5, None),
        (Status.LOST, 0.5, None),
    ],
)
def test_each_end_of_a_session_counts_as_it_should(status, after, helped):
    session, memory = in_project()
    note(session.pk, {memory.pk: How.NAMED})
    run.close(session.pk, status, "Because.")
    assert confidence(memory) == after
    row = UsedMemory.objects.get()
    assert row.helped is helped
    assert row.credited_at is not None


NOT_LOGGED_IN = result("Not logged in · Please run /login", is_error=True)
OVERLOADED = result("API Error: 529 overloaded_error", is_error=True, api_error_status=529)
ENDINGS = {
    "a refused request": ([result("API Error: 400", is_error=True, api_error_status=400)], {"exit_code": 1}),
    "an unknown model": ([result("API Error: 404 model", is_error=True, api_error_status=404)], {"exit_code": 1}),
    "a rate limit": ([result("API Error: 429", is_error=True, api_error_status=429)], {"exit_code": 1}),
    "a usage limit": ([result("Claude AI usage limit reached|1700000000", is_error=True)], {"exit_code": 1}),
    "an overloaded service": ([OVERLOADED], {"exit_code": 1}),
    "a login that is refused": ([NOT_LOGGED_IN], {"exit_code": 1}),
    "the same with nobody to see its exit code": ([NOT_LOGGED_IN], {"exit_code": None}),
    "the budget of a session": ([result(subtype="error_max_budget_usd", is_error=True)], {"exit_code": 1}),
    "an answer without form": (
        [result(subtype="error_max_structured_output_retries", is_error=True)],
        {"exit_code": 1},
    ),
    "an interrupt": ([result(subtype="error_during_execution", is_error=True)], {"exit_code": 1}),
    "an interrupt without a result": ([], {"exit_code": 0}),
    "a crash of the CLI": ([], {"exit_code": 1}),
    "a crash after the result": ([result()], {"exit_code": 134}),
    "a kill": ([], {"exit_code": -9}),
    "a full disk": ([], {"exit_code": 1, "full_disk": "The disk of the data folder is full."}),
    "a stop": ([], {"exit_code": 143, "ended_by": EndedBy.STOP, "stopped_by": "ann"}),
    "a time limit": ([], {"exit_code": 143, "ended_by": EndedBy.DEADLINE}),
    "a worker that is lost": ([], {"exit_code": None}),
}


def test_what_ended_a_session_beside_its_work_says_nothing_of_the_memories_it_used():
    for why, (lines, ending) in ENDINGS.items():
        session, memory = in_project()
        feed(session, init(), text(f"As [m{memory.pk}] says."), *lines)
        assert run.finish(session.pk, **ending) not in (Status.COMPLETED, None), why
        assert (confidence(memory), UsedMemory.objects.get(session=session).helped) == (0.5, None), why
        [line] = training_lines(session.project)
        assert json.loads(line)["reward"] is None, why


def test_a_session_that_could_not_start_or_was_given_up_says_nothing_of_the_memories_it_used():
    for reason in (
        "Could not be started: The CLI was not found.",
        "Given up after 12 attempts to follow it; its log was ingested up to byte 7.",
    ):
        session, memory = in_project(used_means=UsedMeans.INJECTED)
        run.close(session.pk, Status.FAILED, reason)
        assert confidence(memory) == 0.5, reason


def test_a_session_that_used_up_its_turns_failed_at_its_work():
    session, memory = in_project()
    feed(session, init(), text(f"As [m{memory.pk}] says."), result(subtype="error_max_turns", is_error=True))
    assert run.finish(session.pk, exit_code=1) == Status.FAILED
    assert (confidence(memory), UsedMemory.objects.get().helped) == (0.4, False)


def test_an_imported_log_credits_nothing_where_all_that_was_injected_counts_as_used():
    session, memory = in_project(used_means=UsedMeans.INJECTED)
    Session.objects.filter(pk=session.pk).update(trigger=Trigger.IMPORT)
    run.close(session.pk, Status.COMPLETED, "Done.")
    assert (uses(session), confidence(memory)) == ({}, 0.5)


def test_an_escalated_session_counts_neither_way():
    session, memory = in_project()
    note(session.pk, {memory.pk: How.NAMED})
    Session.objects.filter(pk=session.pk).update(structured={"escalation": {"needed": True, "reason": "x"}})
    assert run.close(session.pk, Status.COMPLETED, "Done.") == Status.ESCALATED
    assert (confidence(memory), UsedMemory.objects.get().helped) == (0.5, None)


def test_the_change_names_the_session_and_its_end_and_can_be_taken_back():
    session, memory = in_project()
    note(session.pk, {memory.pk: How.NAMED})
    run.close(session.pk, Status.COMPLETED, "Done.")
    change = MemoryChange.objects.get()
    assert (change.kind, change.session_id, change.reason) == (
        Change.CREDITED,
        session.pk,
        f"Session {session.pk} used it and completed.",
    )
    assert plain(sentence(change)) == f"Session {session.pk} used it and completed."
    restore(memory.pk, change.pk, by="ann")
    assert confidence(memory) == 0.5


@pytest.mark.parametrize(
    ("before", "status", "after"), [(0.95, "completed", 1.0), (1.0, "completed", 1.0), (0.05, "failed", 0)]
)
def test_the_confidence_stays_between_0_and_1(before, status, after):
    session, memory = in_project()
    Memory.objects.filter(pk=memory.pk).update(confidence=before)
    note(session.pk, {memory.pk: How.NAMED})
    run.close(session.pk, Status(status), "x")
    assert confidence(memory) == after


def test_below_the_threshold_it_is_inactive_and_a_later_success_brings_it_back():
    session, memory = in_project()
    later = a_session(project=session.project)
    Memory.objects.filter(pk=memory.pk).update(confidence=0.25)
    for one in (session, later):
        note(one.pk, {memory.pk: How.NAMED})
    run.close(session.pk, Status.FAILED, "x")
    memory.refresh_from_db()
    assert (memory.confidence, memory.active, memory.inactive_reason) == (0.15, False, Inactive.LOWERED)
    assert plain(sentence(MemoryChange.objects.get())).endswith("used it and failed; since then it is inactive.")
    run.close(later.pk, Status.COMPLETED, "x")
    memory.refresh_from_db()
    assert (memory.confidence, memory.active) == (0.25, True)


def test_what_a_person_deactivated_stays_so():
    session, memory = in_project()
    Memory.objects.filter(pk=memory.pk).update(active=False, inactive_reason=Inactive.OPERATOR)
    note(session.pk, {memory.pk: How.NAMED})
    run.close(session.pk, Status.COMPLETED, "x")
    assert Memory.objects.get(pk=memory.pk).active is False


def test_memories_of_other_taxonomies_keep_their_confidence_and_know_whether_they_helped():
    session, _ = in_project()
    ops = MemoryFactory()
    note(session.pk, {ops.pk: How.NAMED})
    run.close(session.pk, Status.COMPLETED, "x")
    assert (confidence(ops), UsedMemory.objects.get().helped) == (0.7, True)
    assert not MemoryChange.objects.exists()


def test_a_project_may_count_what_was_injected():
    session, memory = in_project(used_means=UsedMeans.INJECTED)
    ops, foreign, of_all = MemoryFactory(), project_memory(ProjectFactory()), project_memory(None)
    for row in (ops, foreign, of_all):
        Injected.objects.create(session=session, memory_id=row.pk)
    run.close(session.pk, Status.COMPLETED, "x")
    assert uses(session) == {memory.pk: "injected", of_all.pk: "injected"}
    assert confidence(memory) == 0.6


def test_a_session_is_credited_once_however_often_it_is_closed_or_settled():
    session, memory = in_project()
    note(session.pk, {memory.pk: How.NAMED})
    assert settle(session.pk) == 0  # it runs
    run.close(session.pk, Status.COMPLETED, "x")
    assert run.close(session.pk, Status.FAILED, "x") is None
    assert (settle(session.pk), settle_all()) == (0, 0)
    assert confidence(memory) == 0.6


def test_what_a_worker_left_uncredited_the_reaper_credits(monkeypatch):
    session, memory = in_project()
    note(session.pk, {memory.pk: How.NAMED})

    def die(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run, "settle_safely", die)
        with pytest.raises(KeyboardInterrupt):
            run.close(session.pk, Status.COMPLETED, "x")
    assert confidence(memory) == 0.5
    reaper.reap()
    assert confidence(memory) == 0.6


def test_a_crash_while_it_is_credited_leaves_all_of_it_to_the_next_time(monkeypatch):
    session, memory = in_project()
    note(session.pk, {memory.pk: How.NAMED})
    Session.objects.filter(pk=session.pk).update(status=Status.COMPLETED)

    def die(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(outcome, "credit", die)
        with pytest.raises(KeyboardInterrupt):
            settle(session.pk)
    assert UsedMemory.objects.get().credited_at is None
    assert settle_all(at=timezone.now()) == 1
    assert confidence(memory) == 0.6


def test_a_deleted_memory_is_passed_over():
    session, memory = in_project()
    note(session.pk, {memory.pk: How.NAMED, 10**12: How.NAMED})
    Memory.objects.filter(pk=memory.pk).delete()
    run.close(session.pk, Status.COMPLETED, "x")
    assert not UsedMemory.objects.filter(credited_at=None).exists()


def test_as_many_queries_for_20_memories_as_for_10():
    def queries(count: int) -> int:
        session, _ = in_project()
        rows = [project_memory(session.project) for _ in range(count)]
        note(session.pk, {row.pk: How.NAMED for row in rows})
        Session.objects.filter(pk=session.pk).update(status=Status.COMPLETED)
        with CaptureQueriesContext(connection) as captured:
            assert settle(session.pk) == count
        return len(captured)

    assert queries(10) == queries(20)


@pytest.mark.django_db(transaction=True)
def test_a_session_that_two_workers_settle_at_once_counts_once():
    session, memory = in_project()
    note(session.pk, {memory.pk: How.NAMED})
    Session.objects.filter(pk=session.pk).update(status=Status.COMPLETED)
    both = threading.Barrier(4)
    done: list[int] = []

    def work() -> None:
        try:
            both.wait()
            done.append(settle(session.pk))
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 0, 0, 1]
    assert confidence(memory) == 0.6
