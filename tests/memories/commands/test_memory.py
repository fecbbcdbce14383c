"""`manage.py memory`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.utils import timezone

from memories.injection import ops
from memories.injection.relevant import Task
from memories.lifecycle.sweep import sweep
from memories.models import Change, Inactive, Memory, MemoryChange, Recalled, Verdict
from tests.support import commands
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db


run, document = partial(commands.run, "memory"), partial(commands.document, "memory")


def aged(days, **fields):
    at = timezone.now() - timedelta(days=days)
    return MemoryFactory(updated_at=at, created_at=at, **fields)


# add


def test_add_stores_what_a_person_knows():
    code, out, _ = run(
        "add", "Needs the NAS mounted", "--category", "dependency", "--service", "Jellyfin", "--by", "me"
    )
    memory = Memory.objects.get()
    assert (code, out) == (0, f"Memory {memory.pk} is stored: [dependency:jellyfin] Needs the NAS mounted\n")
    assert (memory.source, memory.tier, memory.session, memory.confidence) == ("human", 0, None, 0.7)
    assert MemoryChange.objects.get().actor == "me"


def test_add_takes_everything_there_is_to_say():
    project = ProjectFactory(slug="homelab")
    options = ["--category", "timing", "--confidence", "1.5", "--project", "homelab", "--persistent"]
    code, answer = document("add", "Backups run at night", *options, "--tag", "a", "--tag", "b")
    assert (code, answer["ok"], answer["command"]) == (0, True, "memory add")
    memory = Memory.objects.get()
    assert (memory.confidence, memory.project, memory.persistent, memory.tags) == (1.0, project, True, ["a", "b"])
    assert answer["result"]["id"] == memory.pk
    assert answer["result"]["project"] == "homelab"
    assert answer["next_actions"][0]["command"] == f"manage.py memory show {memory.pk}"


def test_a_confidence_that_is_none_is_never_taken_silently():
    memory = MemoryFactory(confidence=0.6)
    for given in ("7", "1.01", "-0.1", "nan", "inf"):
        status, answer = document("edit", memory.pk, "--confidence", given)
        assert (status, answer["error"]["code"]) == (1, "invalid_memory"), given
        assert "allowed is a number from 0 to 1" in answer["error"]["message"]
    memory.refresh_from_db()
    assert memory.confidence == 0.6 and not memory.changes.exists()
    for given, stored in (("0", 0.0), ("1", 1.0), ("0.25", 0.25)):
        assert document("edit", memory.pk, "--confidence", given)[0] == 0
        memory.refresh_from_db()
        assert memory.confidence == stored
    _, _, said = run("add", "Needs the NAS", "--category", "dependency", "--confidence", "7")
    assert "Confidence is a number from 0 to 1; 1 was stored." in said


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--category", "misc"), "invalid_memory", "category is 'misc'; ops memories have timing, dependency"),
        (("--category", "timing", "--service", "a b"), "invalid_memory", "service is 'a b'; allowed is one word"),
        (("--category", "timing", "--confidence", "nan"), "invalid_memory", "confidence is nan"),
        (("--category", "timing", "--project", "x"), "project_not_found", "There is no project 'x'."),
    ],
)
def test_add_names_what_is_wrong(arguments, code, message):
    status, answer = document("add", "Some text", *arguments)
    assert (status, answer["ok"], answer["error"]["code"]) == (1, False, code)
    assert message in answer["error"]["message"]
    assert not Memory.objects.exists()
    status, out, err = run("add", "Some text", *arguments)
    assert (status, out) == (1, "")
    assert message in err


def test_add_refuses_the_very_same_text_and_names_the_memory():
    run("add", "Slow on Mondays", "--category", "timing")
    code, _, err = run("add", "slow on mondays", "--category", "timing")
    assert code == 1
    assert f"Memory {Memory.objects.get().pk} says exactly this already." in err


# list, show


def test_list_shows_active_memories_and_narrows():
    MemoryFactory(observation="Takes 60s to start")
    MemoryFactory(service=None, observation="Backups run at night", category="maintenance")
    MemoryFactory(active=False, inactive_reason=Inactive.DECAYED, observation="Old")
    MemoryFactory(verdict=Verdict.HOLD, observation="Doubtful")
    code, out, _ = run("list")
    assert code == 0
    assert "Takes 60s to start" in out
    assert "Backups run at night" in out
    assert "Old" not in out
    assert "Doubtful" not in out
    assert "Backups" in run("list", "--service", "general")[1]
    assert "Takes" not in run("list", "--service", "general")[1]
    assert "inactive (decayed)" in run("list", "--inactive")[1]
    assert "held" in run("list", "--held")[1]
    assert document("list", "--all")[1]["result"]["count"] == 4
    assert run("list", "--text", "nothing like it")[1] == "No memory matches.\n"


def test_list_says_when_there_is_more():
    MemoryFactory.create_batch(3)
    assert run("list", "--limit", "2")[1].endswith("2 of 3; --limit shows more.\n")


@pytest.mark.parametrize("arguments", [("--limit", "0"), ("--category", "misc"), ("--session", "x")])
def test_list_refuses_what_it_does_not_know(arguments):
    code, answer = document("list", *arguments)
    assert (code, answer["error"]["code"]) == (1, "usage")
    assert arguments[0] in answer["error"]["message"]


def test_show_tells_a_memory_and_its_history():
    memory = MemoryFactory(observation="Takes 60s to start")
    run("edit", memory.pk, "--confidence", "0.9", "--by", "me", "--reason", "measured")
    code, out, _ = run("show", memory.pk)
    assert code == 0
    assert out.startswith("Takes 60s to start\n")
    assert "confidence 0.7 → 0.9" in out
    assert "(me: measured)" in out
    by_uuid = document("show", memory.uuid)[1]["result"]
    assert by_uuid["id"] == memory.pk
    assert by_uuid["history"][0]["after"]["confidence"] == 0.9


@pytest.mark.parametrize("key", ["999999", "x", "00000000-0000-0000-0000-000000000000", "9" * 30])
def test_show_of_what_is_not_there(key):
    code, answer = document("show", key)
    assert (code, answer["error"]["code"]) == (1, "memory_not_found")


# edit


def test_edit_changes_what_is_given_and_nothing_else():
    memory, other = MemoryFactory(), MemoryFactory()
    code, _, _ = run(
        "edit", memory.pk, "--observation", "Takes 90s", "--service", "general", "--tag", "x", "--persistent"
    )
    after = Memory.objects.get(pk=memory.pk)
    assert code == 0
    assert (after.observation, after.service, after.tags, after.persistent) == ("Takes 90s", None, ["x"], True)
    assert (after.category, after.confidence) == ("timing", 0.7)
    assert MemoryChange.objects.get().kind == Change.EDITED
    assert Memory.objects.get(pk=other.pk).updated_at == other.updated_at
    assert run("edit", memory.pk, "--observation", "Takes 90s")[1] == (f"Memory {memory.pk} was like this already.\n")


def test_edit_can_set_and_take_away_an_end():
    memory = MemoryFactory()
    run("edit", memory.pk, "--expires", "2027-12-31")
    assert Memory.objects.get().expires_at == datetime(2028, 1, 1, tzinfo=UTC)
    run("edit", memory.pk, "--expires", "never")
    assert Memory.objects.get().expires_at is None
    assert "--expires is 'soon'; allowed is a day like" in run("edit", memory.pk, "--expires", "soon")[2]


def test_edit_takes_out_brings_back_and_approves():
    memory = MemoryFactory(verdict=Verdict.HOLD)
    run("edit", memory.pk, "--approve", "--category", "behavior")
    run("edit", memory.pk, "--deactivate")
    assert (Memory.objects.get().verdict, Memory.objects.get().active) == ("allow", False)
    run("edit", memory.pk, "--reactivate")
    assert Memory.objects.get().active
    kinds = MemoryChange.objects.order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["edited", "approved", "deactivated", "reactivated"]


def test_an_edit_that_is_refused_in_part_is_refused_whole():
    memory = MemoryFactory(observation="As it was")
    code, _, err = run("edit", memory.pk, "--observation", "New", "--category", "misc")
    assert (code, "category is 'misc'" in err) == (1, True)
    assert Memory.objects.get().observation == "As it was"
    assert run("edit", memory.pk)[0] == 1


# context


def test_context_prints_exactly_what_the_next_session_gets():
    MemoryFactory(confidence=0.9)
    aged(44, observation="Fading", confidence=0.7)
    aged(44, observation="Gone", confidence=0.4)
    code, out, err = run("context", "--tier", "1")
    assert (code, err) == (0, "")
    assert Memory.objects.filter(confidence=0.4).exists()  # nothing was changed by looking
    sweep()
    assert out == ops.build(budget=ops.budget_for()).text + "\n"
    assert "Fading (confidence: 0.5)" in out
    assert "Gone" not in out


def test_context_takes_the_agent_s_budget_and_the_project():
    AgentFactory(slug="watch", tier=2, memory_budget=30)
    project = ProjectFactory(slug="homelab")
    MemoryFactory(observation="Everywhere", confidence=0.9)
    MemoryFactory(observation="Here", project=project)
    assert "1 of 1" not in run("context", "--agent", "watch")[1]
    assert "Here" not in run("context")[1]
    assert "Here" in run("context", "--project", "homelab")[1]
    answer = document("context", "--agent", "watch", "--project", "homelab")[1]["result"]
    assert (answer["tier"], answer["budget"], answer["counts"]["over_budget"]) == (2, 30, 1)
    assert answer["tokens"] <= 30


def test_context_with_a_task_is_what_its_session_gets(settings):
    settings.CLAUDEOPS_MEMORY_BUDGET = 120
    MemoryFactory.create_batch(9, observation="The library scan is heavy", confidence=0.95)
    MemoryFactory(observation="The wg0 tunnel drops when the router restarts", service="vpn", confidence=0.6)
    task = "ALERT: tunnel wg0 is down"
    out = run("context", "--task", task)[1]
    assert "wg0" in out
    assert "wg0" not in run("context")[1]
    assert not Recalled.objects.exists()
    assert out == ops.build(budget=120, task=Task(task)).text + "\n"
    assert "relevant to the task: score" in run("context", "--task", task, "--explain")[1].splitlines()[0]


def test_context_and_compose_say_the_same_of_what_a_session_is_told():
    project = ProjectFactory(slug="shop")
    told = {"taxonomy": "project", "project": project, "service": None, "category": "pattern", "confidence": 0.9}
    ours = [MemoryFactory(**told, observation=f"The checkout of region {n} uses its own Redis") for n in "abc"]
    shut = MemoryFactory(**told | {"confidence": 0.1}, observation="The checkout has no tests")
    MemoryFactory(observation="The proxy restarts every night at four")
    AgentFactory(slug="keeper", project=project, tier=2)
    cases = (
        ("--project", "shop", "--task", "Fix the checkout"),
        ("--agent", "keeper", "--task", "Fix the checkout"),
        ("--project", "shop"),
        ("--project", "shop", "--tier", "3", "--task", "Fix the checkout"),
        ("--task", "Fix the checkout"),
    )
    for given in cases:
        code, out, err = run("context", *given)
        assert (code, err) == (0, ""), given
        compose = commands.document("session", "compose", *given)[1]["result"]
        context = document("context", *given)[1]["result"]
        assert context["receipt"] == compose["receipt"]
        assert context["text"] == compose["injected_text"] and "The proxy restarts" in out
        for section in context["sections"]:
            assert section in compose["sections"]
            assert section["text"] in out
        is_shop = given[0] != "--task"
        assert all((one.observation in out) == (one.observation in compose["prompt"]) == is_shop for one in ours)
        assert shut.observation not in out + compose["prompt"]
    explained = {entry["memory_id"]: entry["in"] for entry in document("context", *cases[0], "--explain")[1]["result"]}
    assert all(explained[one.pk] for one in ours) and explained[shut.pk] is False
    assert not Recalled.objects.exists()


def test_context_without_memories_says_nothing_and_why():
    assert run("context") == (0, "", "No memory would go into the prompt; --explain says why.\n")


def test_context_explains_each_memory():
    inside = MemoryFactory(observation="Inside", confidence=0.8)
    held = MemoryFactory(observation="Held", verdict=Verdict.HOLD, verdict_reason="longer than 10,000 characters")
    code, out, _ = run("context", "--explain")
    assert code == 0
    assert out.splitlines() == [
        f"in   {inside.pk}  [timing:jellyfin] Inside (0.8): number 1 of 1 by confidence",
        f"out  {held.pk}  [timing:jellyfin] Held (0.7): held for review: longer than 10,000 characters",
    ]
    answer = document("context", "--explain")[1]["result"]
    assert [(entry["memory_id"], entry["in"]) for entry in answer] == [(inside.pk, True), (held.pk, False)]


# decay, status


def test_decay_takes_what_time_takes_once():
    memory = aged(44)
    code, out, _ = run("decay", "--dry-run")
    assert (code, out) == (0, "Would be: 1 decayed, 0 of them now inactive; 0 expired.\n")
    assert Memory.objects.get().confidence == 0.7
    assert document("decay")[1]["result"] == {"decayed": 1, "deactivated": 0, "expired": 0}
    assert document("decay")[1]["result"]["decayed"] == 0
    assert Memory.objects.get(pk=memory.pk).confidence == 0.5


def test_status_counts():
    MemoryFactory(persistent=True)
    aged(44, category="behavior")
    MemoryFactory(active=False, inactive_reason=Inactive.OPERATOR)
    MemoryFactory(verdict=Verdict.HOLD)
    code, answer = document("status")
    assert code == 0
    found = answer["result"]
    assert (found["memories"], found["active"], found["held"], found["persistent"]) == (4, 2, 1, 1)
    assert found["inactive"] == {"operator": 1}
    assert found["categories"] == {"behavior": 1, "timing": 1}
    assert found["sweep_is_due"] is True
    assert found["tiers"]["1"]["counts"]["eligible"] == 2
    out = run("status")[1]
    assert "4 memories: 2 active, 1 inactive, 1 held for review; 1 never decay." in out
    assert "Tier 1 is told 2 of 2 memories" in out


# export, import


def test_export_and_import_carry_memories_over(tmp_path):
    MemoryFactory.create_batch(3)
    file = tmp_path / "memories.jsonl"
    assert run("export", file)[:2] == (0, f"3 memories are in {file}.\n")
    assert run("export")[1] == file.read_text()
    assert run("import", file)[1] == "3 known already.\n"
    Memory.objects.all().delete()
    assert document("import", file, "--by", "me")[1]["result"]["created"] == 3
    assert MemoryChange.objects.filter(actor="me", kind=Change.CREATED).count() == 3
    assert run("export")[1] == file.read_text()


def test_files_that_cannot_be_read_or_written_are_named(tmp_path):
    code, _, err = run("import", tmp_path / "none.jsonl")
    assert (code, "none.jsonl cannot be read: No such file" in err) == (1, True)
    code, _, err = run("export", tmp_path)
    assert (code, "cannot be written" in err) == (1, True)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "it is not UTF-8 text" in run("import", tmp_path / "binary")[2]
    (tmp_path / "wrong.jsonl").write_text('{"category": "misc", "observation": "x"}')
    code, _, err = run("import", tmp_path / "wrong.jsonl")
    assert (code, "line 1: category is 'misc'" in err) == (1, True)


# purge


def test_purge_asks_first_and_keeps_the_history():
    old = aged(400, active=False, inactive_reason=Inactive.DECAYED)
    kept = [aged(300, active=False), aged(400)]
    assert run("purge", "--inactive-days", "365")[1] == "1 memory would be deleted. Add --yes to do it.\n"
    assert Memory.objects.count() == 3
    assert run("purge", "--inactive-days", "365", "--yes", "--by", "me")[1] == "1 memory deleted.\n"
    assert set(Memory.objects.values_list("pk", flat=True)) == {memory.pk for memory in kept}
    change = MemoryChange.objects.get()
    assert (change.kind, change.memory_uuid, change.actor) == (Change.DELETED, old.uuid, "me")


def test_purge_of_inactive_ones_takes_the_history_when_asked():
    aged(400, active=False)
    assert run("purge", "--inactive-days", "365", "--erase", "--yes")[1] == "1 memory erased with their history.\n"
    assert not MemoryChange.objects.exists()


@pytest.mark.parametrize(
    "arguments", [(), ("1", "--inactive-days", "3"), ("--inactive-days", "-1"), ("1", "--erase", "--yes")]
)
def test_purge_wants_one_clear_choice(arguments):
    assert document("purge", *arguments)[1]["error"]["code"] == "usage"


def test_list_narrows_by_how_far_a_memory_is_trusted():
    MemoryFactory()
    memory = MemoryFactory(exposure="outside")
    _, answer = document("list", "--trust", "external")
    assert [(row["id"], row["trust"]) for row in answer["result"]["memories"]] == [(memory.pk, "external")]
    assert "trust:       outside text" in run("show", memory.pk)[1]


def test_list_narrows_by_what_the_session_had_read():
    MemoryFactory()
    memory = MemoryFactory(exposure="outside", exposed_to=["logs: web"])
    _, answer = document("list", "--exposure", "outside")
    assert [(row["id"], row["exposed_to"]) for row in answer["result"]["memories"]] == [(memory.pk, ["logs: web"])]
    assert "outside text (logs: web)" in run("show", memory.pk)[1]


def test_what_waits_for_its_confirmation_is_listed_counted_and_approved():
    waits = MemoryFactory(provisional="credentials", exposure="outside", observation="Waits")
    MemoryFactory(observation="Waits for nobody")
    assert [row["observation"] for row in document("list", "--unconfirmed")[1]["result"]["memories"]] == ["Waits"]
    assert "unconfirmed: credentials" in run("show", waits.pk)[1]
    assert "Trust is guarded: 1 memory unconfirmed, kept out of prompts." in run("status")[1]
    run("edit", waits.pk, "--approve")
    assert "Trust is guarded: 0 memories unconfirmed" in run("status")[1]


# windows of time


def test_a_window_is_set_shown_and_cleared():
    code, _, _ = run("add", "The certificate renews", "--category", "timing", "--surface", "First  Monday")
    memory = Memory.objects.get()
    assert (code, memory.surface) == (0, "first monday")
    assert "window “first monday”" in run("show", memory.pk)[1]
    assert run("edit", memory.pk, "--surface", "day -1")[0] == 0
    code, answer = document("edit", memory.pk, "--surface", "")
    assert (code, answer["result"]["surface"]) == (0, "")
    edits = MemoryChange.objects.filter(memory=memory, kind=Change.EDITED).order_by("pk")
    assert [(change.before["surface"], change.after["surface"]) for change in edits] == [
        ("first monday", "day -1"),
        ("day -1", ""),
    ]


def test_a_window_that_cannot_be_read_is_refused_with_the_forms():
    memory = MemoryFactory(surface="mon")
    code, out, err = run("edit", memory.pk, "--surface", "every full moon")
    memory.refresh_from_db()
    assert (code, memory.surface) == (1, "mon")
    assert "first monday" in out + err


def test_timed_lists_what_is_told_now_and_next():
    today = timezone.now().date()
    now = MemoryFactory(surface=f"{today}", observation="The audit")
    soon = MemoryFactory(surface=f"{today + timedelta(days=9)}", observation="The move")
    MemoryFactory(surface=f"{today + timedelta(days=40)}", observation="The holiday")
    MemoryFactory(surface=f"{today}", observation="Held", verdict=Verdict.HOLD)
    code, answer = document("timed")
    assert code == 0
    assert [(row["memory"]["id"], row["open"]) for row in answer["result"]] == [(now.pk, True), (soon.pk, False)]
    out = run("timed")[1]
    assert "told now" in out
    assert "The move" in out
    assert len(document("timed", "--days", "60")[1]["result"]) == 3
    assert document("timed", "--days", "0")[1]["error"]["code"] == "usage"
