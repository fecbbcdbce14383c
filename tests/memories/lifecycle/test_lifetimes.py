"""When memories of a project expire: made, approved, reactivated, renewed, persistent; one and many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.capture.statement import Provenance
from memories.lifecycle import verbs
from memories.lifecycle.bulk import BULK_ACTIONS
from memories.lifecycle.sweep import sweep
from memories.models import Change, Inactive, Memory, MemoryChange
from memories.models.project import checked_lifetimes
from memories.store import Statement, remember
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=20)


@pytest.fixture
def project():
    return ProjectFactory(slug="web", default_expiry={"context": 7, "warning": None})


def of_project(project, category="context", **fields):
    return MemoryFactory(taxonomy="project", project=project, category=category, service=None, **fields)


def end_of(memory):
    return Memory.objects.get(pk=memory.pk).expires_at


@pytest.mark.parametrize(
    ("category", "days"), [("context", 7), ("warning", None), ("learning", 180), ("pattern", None)]
)
def test_a_new_memory_gets_the_projects_lifetime_of_its_type_or_else_the_taxonomys(project, category, days):
    said = Provenance("run", "agent:x", project_id=project.pk)
    made = remember(Statement(category, "The build needs node 20", taxonomy="project"), said, at=NOW)
    expected = NOW + timedelta(days=days) if days else None
    assert Memory.objects.get(pk=made.memory_id).expires_at == expected


def test_a_session_that_says_it_again_does_not_move_the_end(project):
    memory = of_project(project, expires_at=NOW + timedelta(days=3))
    verbs.reinforce(memory, by="agent:x", at=NOW)
    assert end_of(memory) == NOW + timedelta(days=3)


def test_an_approval_raises_a_projects_memory_to_1_and_begins_its_life_anew(project):
    memory = of_project(project, confidence=0.5, expires_at=NOW + timedelta(days=1))
    change = verbs.approve(memory, by="ann", at=LATER)
    memory.refresh_from_db()
    assert (memory.confidence, memory.expires_at) == (1.0, LATER + timedelta(days=7))
    assert (change.kind, change.before["confidence"], change.after["confidence"]) == (Change.APPROVED, 0.5, 1.0)
    assert verbs.approve(memory, by="ann", at=LATER) is None


def test_an_approval_leaves_the_confidence_of_an_ops_memory():
    memory = MemoryFactory(confidence=0.5)
    verbs.approve(memory, by="ann", at=NOW)
    memory.refresh_from_db()
    assert (memory.confidence, memory.expires_at) == (0.5, None)


def test_an_approval_brings_back_what_was_too_unsure_and_not_what_a_person_took_away(project):
    lowered = of_project(project, active=False, inactive_reason=Inactive.LOWERED, confidence=0.1)
    taken = of_project(project, active=False, inactive_reason=Inactive.OPERATOR, confidence=0.1)
    for memory in (lowered, taken):
        verbs.approve(memory, by="ann", at=NOW)
        memory.refresh_from_db()
    assert (lowered.active, taken.active) == (True, False)


def test_reactivating_and_renewing_begin_its_life_anew(project):
    expired = of_project(project, active=False, inactive_reason=Inactive.EXPIRED, expires_at=NOW)
    verbs.reactivate(expired, by="ann", at=LATER)
    assert end_of(expired) == LATER + timedelta(days=7)
    change = verbs.renew(expired, by="ann", at=LATER + timedelta(days=5))
    assert end_of(expired) == LATER + timedelta(days=12)
    assert (change.kind, change.reason) == (Change.EDITED, "Renewed.")
    assert verbs.renew(of_project(project, "warning"), by="ann", at=NOW) is None
    assert verbs.renew(of_project(project, active=False), by="ann", at=NOW) is None


def test_an_end_that_a_person_set_stays(project):
    person = Provenance.typed_by("ann")
    for end in (NOW + timedelta(days=300), NOW + timedelta(days=21), None):
        rows = [of_project(project, confidence=0.5, expires_at=NOW + timedelta(days=7)) for _ in range(8)]
        for row in rows[:-1]:
            verbs.edit(row, by="ann", at=NOW, expires_at=end, provenance=person)
        made = Statement("context", f"The build needs node 20 until {end}", taxonomy="project", expires_at=end)
        said = Provenance("human", "ann", project_id=project.pk, channel="human")
        rows[-1] = Memory.objects.get(pk=remember(made, said, at=NOW).memory_id)
        verbs.approve(rows[0], by="ann", at=LATER)
        verbs.deactivate(rows[1], by="ann", at=LATER)
        verbs.reactivate(rows[1], by="ann", at=LATER)
        verbs.reinforce(rows[2], by="agent:x", at=LATER, session_id=None)
        verbs.set_confidence(rows[3], 0.1, by="ann", at=LATER)
        verbs.set_confidence(rows[3], 0.9, by="ann", at=LATER)
        verbs.mark_persistent(rows[4], by="ann", at=LATER)
        verbs.mark_persistent(rows[4], False, by="ann", at=LATER)
        verbs.deactivate(rows[5], by="ann", at=LATER)
        verbs.edit(rows[5], by="ann", at=LATER, active=True, tags=["new"], provenance=person)
        verbs.deactivate(rows[6], by="ann", at=LATER)
        chosen = Memory.objects.filter(pk__in=[rows[6].pk, rows[7].pk])
        for action in ("reactivate", "approve"):
            BULK_ACTIONS[action].run(chosen, by="ann", at=LATER, provenance=person)
        assert [end_of(row) for row in rows] == [end] * len(rows)
        assert all(Memory.objects.get(pk=row.pk).active for row in rows)


def test_an_end_that_a_person_gives_while_reactivating_is_the_one_that_holds(project):
    row = of_project(project, active=False, inactive_reason=Inactive.OPERATOR, expires_at=NOW)
    verbs.edit(row, by="ann", at=LATER, active=True, expires_at=LATER + timedelta(days=2))
    assert end_of(row) == LATER + timedelta(days=2)
    verbs.approve(row, by="ann", at=LATER)
    assert end_of(row) == LATER + timedelta(days=2)


def test_an_end_that_followed_from_a_lifetime_begins_anew_and_so_does_one_that_is_over(project):
    row = of_project(project, active=False, inactive_reason=Inactive.OPERATOR, confidence=0.5)
    verbs.edit(row, by="ann", at=NOW, active=True, tags=["new"])
    verbs.approve(row, by="ann", at=LATER)
    assert end_of(row) == LATER + timedelta(days=7)
    verbs.edit(row, by="ann", at=NOW, expires_at=LATER + timedelta(days=1))
    verbs.deactivate(row, by="ann", at=LATER)
    verbs.reactivate(row, by="ann", at=LATER + timedelta(days=2))
    assert end_of(row) == LATER + timedelta(days=9)


def test_a_persistent_memory_does_not_expire_by_its_type(project):
    memory = of_project(project, expires_at=NOW + timedelta(days=1))
    verbs.mark_persistent(memory, by="ann", at=NOW)
    assert end_of(memory) is None
    verbs.mark_persistent(memory, False, by="ann", at=LATER)
    assert end_of(memory) == LATER + timedelta(days=7)
    own = MemoryFactory(expires_at=NOW)
    verbs.mark_persistent(own, by="ann", at=NOW)
    assert end_of(own) == NOW  # a person's own end


@pytest.mark.parametrize("name", ["approve", "renew", "reactivate", "mark_persistent"])
def test_many_cost_the_same_number_of_queries_as_few(name):
    def queries(count):
        for project in (ProjectFactory(), ProjectFactory()):
            for number in range(count):
                of_project(project, observation=f"{name} {project.pk} {number}", active=name != "reactivate")
        with CaptureQueriesContext(connection) as captured:
            rows = Memory.objects.filter(observation__startswith=name)
            BULK_ACTIONS[name].run(rows, by="ann", at=NOW, provenance=Provenance.typed_by("ann"))
        projects = sum('FROM "projects"' in query["sql"] for query in captured)
        return len(captured) - projects, projects

    few, many = queries(2), queries(9)
    assert few[0] == many[0]
    assert few[1] == 2  # each project once
    assert many[1] <= 4


def test_the_bulk_renewal_says_how_many_and_leaves_the_others(project):
    one, other = of_project(project, expires_at=NOW), of_project(project, "pattern")
    result = BULK_ACTIONS["renew"].run(Memory.objects.filter(pk__in=[one.pk, other.pk]), by="ann", at=NOW)
    assert (result.changed, result.unchanged) == (1, 1)
    assert result.message == "1 memory renewed; 1 memory had nothing to change."
    assert MemoryChange.objects.get(memory=one).reason == "Renewed."


def test_a_renewal_by_days_in_bulk_adds_up_unless_it_says_what_was_seen(project):
    one = of_project(project, expires_at=NOW)
    rows = Memory.objects.filter(pk=one.pk)
    for count in (1, 2):  # as the API does
        BULK_ACTIONS["extend"].run(rows, by="ann", at=NOW)
        assert end_of(one) == NOW + timedelta(days=30 * count)
    for _ in range(2):  # as a page does that was drawn later
        BULK_ACTIONS["extend"].run(rows, by="ann", at=LATER, drawn=NOW + timedelta(seconds=1))
        assert end_of(one) == NOW + timedelta(days=90)


@pytest.mark.parametrize(
    "value",
    [[], "x", {"timing": 5}, {"context": 0}, {"context": -1}, {"context": 1.5}, {"context": True}, {"context": 4000}],
)
def test_lifetimes_that_cannot_be_are_refused_by_name(value):
    with pytest.raises(ValidationError):
        checked_lifetimes(value)


def test_the_admin_stores_a_projects_lifetimes_and_refuses_those_that_cannot_be(admin_client, project):
    address = f"/admin/memories/project/{project.pk}/change/"
    given = {"slug": "web", "name": "", "description": "", "default_expiry": '{"context": 14}'}
    given |= {"path": "", "memories_in_prompt": 10, "memory_budget": 500, "used_means": "named"}
    given |= {"files_folder": "notes", "files_pattern": "{agent}.md", "files_limits": "{}", "files_sections": "{}"}
    assert admin_client.post(address, given).status_code == 302
    project.refresh_from_db()
    assert project.default_expiry == {"context": 14}
    html = admin_client.post(address, {**given, "default_expiry": '{"timing": 1}'}).content.decode()
    assert "is no type; allowed are pattern, warning, learning, context." in html


ENDS = {
    "expired": (lambda memory: sweep(NOW), 0.5, NOW),
    "contradicted": (lambda memory: verbs.contradict(memory, by="agent:watch", at=NOW), 0.3, None),
    "lowered": (lambda memory: verbs.set_confidence(memory, 0.19, by="ann", at=NOW), 0.5, None),
}


@pytest.mark.parametrize("reason", ENDS)
def test_expiry_and_a_confidence_below_0_2_deactivate_with_a_change_that_says_why(project, reason):
    end, confidence, expires_at = ENDS[reason]
    memory = of_project(project, confidence=confidence, expires_at=expires_at)
    end(memory)
    memory.refresh_from_db()
    assert (memory.active, memory.inactive_reason) == (False, reason)
    change = MemoryChange.objects.get(memory=memory)
    assert (change.after["active"], change.after["inactive_reason"]) == (False, reason)


def test_at_0_2_a_projects_memory_stays_active(project):
    memory = of_project(project, confidence=0.5)
    verbs.set_confidence(memory, 0.2, by="ann", at=NOW)
    memory.refresh_from_db()
    assert memory.active


@pytest.mark.parametrize(("end", "expected"), [(NOW + timedelta(days=3), 33), (NOW - timedelta(days=3), 30)])
def test_a_renewal_by_days_ends_later_than_the_end_or_than_now(project, end, expected):
    memory = of_project(project, expires_at=end)
    verbs.renew(memory, by="ann", at=NOW, days=30)
    memory.refresh_from_db()
    assert memory.expires_at == NOW + timedelta(days=expected)


def test_a_renewal_by_days_leaves_what_never_expires_and_what_is_inactive(project):
    for given in ({"expires_at": None}, {"expires_at": NOW, "active": False}):
        assert verbs.renew(of_project(project, **given), by="ann", at=NOW, days=30) is None
