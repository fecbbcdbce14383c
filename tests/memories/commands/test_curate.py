"""`manage.py curate`: how the stages stand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.curate.maintenance import undo_until
from memories.curate.maintenance.steps import STEPS
from memories.models import MaintenanceRun, Memory, Project, ProposalState, Reflection, Tier
from tests.memories.curate.reflection.conftest import observed, proposal, reflector
from tests.memories.curate.triaging import a_file, a_proposal
from tests.support.commands import document, run
from tests.support.factories import MemoryFactory, MemoryFileFactory, ProjectFactory, ProposalFactory

__all__ = ["reflector"]

pytestmark = pytest.mark.django_db


def stages() -> dict[str, dict]:
    code, found = document("curate", "status")
    assert code == 0
    return {stage["name"]: stage for stage in found["result"]}


def test_a_new_installation_has_stages_that_never_ran():
    found = stages()
    assert list(found) == ["reflect", "triage: rules", "triage: model", "triage: person", "promote", "maintain"]
    assert all(stage["last"] is None and stage["waiting"]["count"] == 0 for stage in found.values())
    assert "never" in run("curate", "status")[1]


def test_what_is_new_is_said_for_each_project(reflector):
    observed("db_main has 3 replicas.")
    for slug, number in (("shop", 2), ("bar", 1)):
        for place in range(number):
            observed(
                f"Host h{place} has a disk.",
                project=ProjectFactory(slug=slug) if not place else Project.objects.get(slug=slug),
            )
    said = stages()["reflect"]["next"]
    assert said.startswith("global: 1 are new")
    assert said.endswith("; shop: 2 are new; bar: 1 are new")
    assert "shop: 2 are new" in run("curate", "status")[1]


def test_what_waits_is_counted_by_stage():
    file = MemoryFileFactory(problem="the repository is in the middle of a rebase")
    Reflection.objects.create(file=file, number=1, until=timezone.now(), problem="the model failed")
    for tier in (Tier.RULES, Tier.MODEL, Tier.PERSON, Tier.PERSON):
        ProposalFactory(file=file, tier=tier)
    ProposalFactory(file=file, state=ProposalState.APPROVED, decided_at=timezone.now())
    found = stages()
    assert [stage["waiting"]["count"] for stage in found.values()] == [1, 1, 1, 2, 1, 0]
    assert found["reflect"]["problem"] == "the model failed"
    assert found["promote"]["problem"] == "MEMORY.md: the repository is in the middle of a rebase"


def test_the_status_of_many_costs_what_that_of_few_costs(django_assert_num_queries):
    file = MemoryFileFactory()
    for _ in range(3):
        ProposalFactory(file=file)
    with django_assert_num_queries(14):
        stages()
    for _ in range(10):
        ProposalFactory(file=file)
    with django_assert_num_queries(14):
        stages()


def test_a_reflector_that_is_off_is_said_with_what_helps(settings):
    settings.CLAUDEOPS_MODEL_REFLECTOR = ""
    _, found = document("curate", "status")
    assert "no model is set for the reflector" in found["result"][0]["problem"]
    assert found["next_actions"][0]["command"] == "manage.py model status"


@pytest.mark.django_db(transaction=True)
def test_reflect_asks_and_says_what_became_of_it(reflector):
    assert "Nothing was asked: nothing is new." in run("curate", "reflect")[1]
    observed("db_main has 3 replicas.")
    reflector.proposals = [proposal(change="db_main has 3 replicas."), proposal(change="")]
    code, out, _ = run("curate", "reflect")
    assert code == 0
    assert "1 observations became 1 proposals" in out
    assert "Not read: proposal 2: it has no text." in out


@pytest.mark.django_db(transaction=True)
def test_a_dry_run_says_what_would_be_asked_and_asks_nothing(reflector):
    one = observed("db_main has 3 replicas.", project=ProjectFactory(slug="shop"))
    code, found = document("curate", "reflect", "--project", "shop", "--dry-run")
    assert (code, found["result"]["observations"]) == (0, [one.pk])
    assert run("curate", "reflect", "--dry-run")[1].startswith("Nothing is new")
    assert not reflector.served.asked
    assert not Reflection.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_reflect_without_a_model_or_a_project_is_refused(reflector):
    observed("db_main has 3 replicas.")
    reflector.served.status = 401
    code, found = document("curate", "reflect")
    assert (code, found["error"]["code"]) == (1, "model_unavailable")
    code, found = document("curate", "reflect", "--project", "nothing")
    assert (code, found["error"]["code"]) == (1, "unknown_project")


def test_triage_decides_and_says_what_and_by_which_rule(settings):
    settings.CLAUDEOPS_MODEL_TRIAGE = ""
    row = a_proposal(a_file())
    code, out, _ = run("curate", "triage", "--dry-run")
    assert code == 0 and "promote" in out
    row.refresh_from_db()
    assert row.state == "waiting"
    code, found = document("curate", "triage")
    assert (code, found["result"]["counts"]) == (0, {"rules: promote": 1})
    assert found["result"]["said"][0]["proposal"] == row.pk
    assert "Nothing was decided." in run("curate", "triage")[1]


def test_triage_without_a_model_says_so(settings):
    settings.CLAUDEOPS_MODEL_TRIAGE = ""
    a_proposal(a_file(), "The backup usually takes a while in the morning.")
    out = run("curate", "triage")[1]
    assert "review" in out and "no model is set for the triage" in out


def test_what_is_new_and_what_waits_for_a_person_is_said_with_what_to_do():
    observed("db_main has 3 replicas.", at=timezone.now())
    ProposalFactory(tier=Tier.PERSON)
    _, found = document("curate", "status")
    assert found["result"][0]["next"].startswith("global: 1 are new; the next one is due ")
    assert [action["command"] for action in found["next_actions"]] == [
        "manage.py curate reflect",
        "manage.py proposal list",
    ]


@pytest.mark.django_db(transaction=True)
class TestMaintain:
    def stale(self) -> Memory:
        """Knowledge that nobody recalled for 100 days."""
        old = timezone.now() - timedelta(days=100)
        given = {"taxonomy": "knowledge", "category": "operations", "service": None}
        return MemoryFactory(observation="Printer 3 stands on the third floor", updated_at=old, **given)

    def test_a_run_says_what_each_step_did_and_until_when_it_can_be_undone(self):
        row = self.stale()
        code, out, _ = run("curate", "maintain", "--by", "paula")
        done = MaintenanceRun.objects.get()
        assert code == 0
        assert "Became stale: 1" in out and "Closed: 0" in out
        assert f"It can be undone until {undo_until(done):%Y-%m-%d %H:%M} UTC." in out
        row.refresh_from_db()
        assert row.stale_at is not None

    def test_the_document_has_the_figures_of_the_steps_in_their_order(self):
        self.stale()
        code, found = document("curate", "maintain")
        result = found["result"]
        assert (code, result["run"], result["state"]) == (0, MaintenanceRun.objects.get().pk, "done")
        assert result["steps"]["stale"]["did"] == 1
        assert list(result["steps"]) == [step.name for step in STEPS]
        assert found["next_actions"][0]["command"] == f"manage.py curate maintain --undo {result['run']}"

    def test_a_dry_run_names_the_memories_and_writes_nothing(self):
        row = self.stale()
        code, out, _ = run("curate", "maintain", "--dry-run")
        assert code == 0
        assert f"Became stale: 1\n    memory {row.pk}: Printer 3 stands on the third floor (Stale: never" in out
        assert "Pairs judged: unknown before it runs" in out
        _, found = document("curate", "maintain", "--dry-run")
        planned = {one["name"]: one for one in found["result"]}
        assert planned["stale"]["changes"][0][:2] == [row.pk, row.observation]
        assert planned["judged"]["did"] is None
        row.refresh_from_db()
        assert row.stale_at is None
        assert not MaintenanceRun.objects.exists()

    def test_an_undo_takes_it_back_once_whole_or_by_step(self):
        row = self.stale()
        pk = document("curate", "maintain")[1]["result"]["run"]
        code, found = document("curate", "maintain", "--undo", pk, "--step", "closed")
        assert (code, found["result"]["back"]) == (0, 0)
        assert run("curate", "maintain", "--undo", pk, "--by", "paula")[1].startswith("1 memory is as it was before.")
        row.refresh_from_db()
        assert row.stale_at is None
        assert "already" in run("curate", "maintain", "--undo", pk)[1]

    @pytest.mark.parametrize(
        ("given", "code"),
        [
            (("--undo", "99999999"), "not_found"),
            (("--undo", "RUN", "--step", "judged"), "invalid_memory"),
            (("--undo", "RUN", "--step", "nothing"), "invalid_memory"),
        ],
    )
    def test_wrong_input_is_refused_with_what_helps(self, given, code):
        pk = document("curate", "maintain")[1]["result"]["run"]
        status, found = document("curate", "maintain", *[str(pk) if one == "RUN" else one for one in given])
        assert status == 1
        assert found["error"]["code"] == code
        assert found["fix"]

    def test_while_another_run_is_going_on_it_is_refused(self):
        document("curate", "maintain")
        until = timezone.now() + timedelta(minutes=5)
        MaintenanceRun.objects.update(state="running", claimed_by="other", claimed_until=until)
        code, found = document("curate", "maintain")
        assert (code, found["error"]["code"]) == (1, "conflict")
