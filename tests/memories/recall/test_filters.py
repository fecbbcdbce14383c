"""Every filter of a recall, on both databases; nothing of another project or agent, by any of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.lifecycle import verbs
from memories.models import Memory, Verdict
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, InvalidRecall, filters, keyword_index, recall
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def house():
    """The same fact, known in many scopes; each row's observation ends with its name."""
    alpha, beta = ProjectFactory(slug="alpha"), ProjectFactory(slug="beta")
    rows = {
        "global": {},
        "general": {"service": None},
        "alpha": {"project": alpha},
        "beta": {"project": beta},
        "scout": {"agent": "scout"},
        "mender": {"agent": "mender"},
        "plex": {"service": "plex"},
        "remediation": {"category": "remediation"},
        "knowledge": {"taxonomy": "knowledge", "category": "operations"},
        "tagged": {"tags": ["disk", 'it\'s "so"']},
        "other tag": {"tags": ["disks"]},
        "old": {"updated_at": NOON - 9 * DAY, "created_at": NOON - 9 * DAY},
        "held": {"verdict": Verdict.HOLD},
        "inactive": {"active": False},
        "alpha of scout": {"project": alpha, "agent": "scout"},
    }
    for name, values in rows.items():
        defaults = {"created_at": NOON - DAY, "updated_at": NOON - DAY}
        word = "".join(part.capitalize() for part in name.split())
        MemoryFactory(observation=f"The tunnel drops, seen by {word} alone", **{**defaults, **values})
    keyword_index.catch_up()
    return {"alpha": alpha.pk, "beta": beta.pk}


def names(filters: Filters, **kwargs) -> set[str]:
    hits = recall("tunnel", filters, limit=100, at=NOON, **kwargs).hits
    return {hit.observation.removeprefix("The tunnel drops, seen by ").removesuffix(" alone") for hit in hits}


SHARED = {"Global", "General", "Plex", "Remediation", "Knowledge", "Tagged", "OtherTag", "Old"}


def test_without_a_scope_only_what_belongs_to_no_project_and_no_agent_comes_back(house):
    assert names(Filters()) == SHARED


def test_a_project_sees_its_own_and_the_global_ones(house):
    assert names(Filters(project=house["alpha"])) == SHARED | {"Alpha"}


def test_an_agent_sees_its_own_and_those_of_no_agent(house):
    assert names(Filters(agent="scout")) == SHARED | {"Scout"}


def test_project_and_agent_both_count(house):
    assert names(Filters(project=house["alpha"], agent="scout")) == SHARED | {"Alpha", "Scout", "AlphaOfScout"}


def test_an_operator_sees_all(house):
    everything = names(Filters(project=ANY_PROJECT, agent=ANY_AGENT))
    assert everything == SHARED | {"Alpha", "Beta", "Scout", "Mender", "AlphaOfScout"}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"services": ("plex",)}, {"Plex"}),
        ({"services": (None,)}, {"General"}),
        ({"services": ("plex", None)}, {"Plex", "General"}),
        ({"services": ()}, set()),
        ({"taxonomy": "knowledge"}, {"Knowledge"}),
        ({"categories": ("remediation", "operations")}, {"Remediation", "Knowledge"}),
        ({"tags": ("disk",)}, {"Tagged"}),
        ({"tags": ("disk", 'it\'s "so"')}, {"Tagged"}),
        ({"tags": ("dis%",)}, set()),
        ({"include_hold": True}, SHARED | {"Held"}),
        ({"since": NOON - 2 * DAY}, SHARED - {"Old"}),
        ({"until": NOON - 2 * DAY}, {"Old"}),
        ({"as_of": NOON - 2 * DAY}, {"Old"}),
        ({"as_of": NOON - 2 * DAY, "services": ("plex",)}, set()),
    ],
)
def test_a_filter_lets_through_what_it_says_and_nothing_of_another_scope(house, filters, expected):
    assert names(Filters(**filters)) == expected


@pytest.mark.parametrize("filters", [{"project": None}, {"project": "beta"}])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"services": ("jellyfin", None, "plex")},
        {"categories": ("timing",)},
        {"tags": ()},
        {"include_hold": True},
        {"since": NOON - 100 * DAY},
        {"as_of": NOON},
        {"taxonomy": "ops"},
    ],
)
def test_no_filter_brings_what_another_project_or_agent_knows(house, filters, more):
    project = house["beta"] if filters["project"] == "beta" else None
    found = names(Filters(**{**filters, "project": project, "agent": "mender", **more}))
    assert not found & {"Alpha", "Scout", "AlphaOfScout"}
    assert project is not None or "Beta" not in found


def test_what_lies_outside_is_counted_and_not_named(house):
    trace = recall("tunnel", Filters(services=("plex",)), at=NOON).trace
    assert trace.dropped["other scope"] > 0


def test_what_is_held_or_inactive_is_counted(house):
    trace = recall("tunnel", Filters(), at=NOON).trace
    assert (trace.dropped["held"], trace.dropped["inactive"]) == (1, 1)


def test_as_of_gives_a_memory_as_it_stood_then():
    memory = MemoryFactory(
        observation="The tunnel drops at night", created_at=NOON - 9 * DAY, updated_at=NOON - 9 * DAY
    )
    verbs.edit(memory, by="operator", observation="The printer jams at noon", at=NOON - 2 * DAY)
    verbs.deactivate(memory, by="operator", at=NOON - DAY)
    keyword_index.catch_up()
    then = recall("tunnel", Filters(as_of=NOON - 5 * DAY)).hits
    assert [(hit.memory_id, hit.observation) for hit in then] == [(memory.pk, "The tunnel drops at night")]
    assert recall("printer", Filters(as_of=NOON - 5 * DAY)).hits == ()
    assert [hit.observation for hit in recall("printer", Filters(as_of=NOON - 36 * DAY / 24)).hits] == [
        "The printer jams at noon"
    ]
    assert recall("printer", Filters()).hits == ()
    assert recall("tunnel", Filters(as_of=NOON - 10 * DAY)).hits == ()


@pytest.mark.parametrize(
    "filters",
    [
        {"project": "alpha"},
        {"project": True},
        {"taxonomy": "opps"},
        {"since": datetime(2026, 1, 1)},
        {"as_of": datetime(2026, 1, 1)},
    ],
)
def test_a_wrong_filter_is_refused_by_its_name(filters):
    with pytest.raises(InvalidRecall, match=next(iter(filters))):
        recall("tunnel", Filters(**filters))


@pytest.mark.parametrize("values", [{"profile": "wide"}, {"limit": 0}, {"limit": 101}])
def test_a_wrong_profile_or_limit_is_refused(values):
    with pytest.raises(InvalidRecall, match=next(iter(values))):
        recall("tunnel", Filters(), **values)


@pytest.mark.django_db
def test_a_projects_rows_are_listed_whole_and_by_their_indexes():
    """Where the global memories are few: neither these nor the project's are found by reading all."""
    mine, other = ProjectFactory(), ProjectFactory()
    Memory.objects.bulk_create(
        Memory(category="timing", observation=f"number {place}", project=other) for place in range(600)
    )
    rows = [MemoryFactory(project=mine), MemoryFactory(project=None), MemoryFactory(project=mine, agent="watch")]
    visible = filters.scope_of(Filters(project=mine.pk))
    assert sorted(filters.ids_in(visible)) == [rows[0].pk, rows[1].pk]
    assert len(filters.ids_in(visible, 1)) == 1
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as asked:
        filters.ids_in(visible)
    with connection.cursor() as cursor:
        explain = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
        cursor.execute(explain + asked[-1]["sql"])
        plan = "\n".join(str(line) for row in cursor.fetchall() for line in row)
    assert "memories_project" in plan, plan
    assert "memories_global" in plan, plan
