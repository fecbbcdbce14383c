"""Every filter and scope, and the words' scores, beside a plain reading in Python: so every database gives the same.

The rows are drawn once, by a seed; what must come back is computed here, row by row, from the rows as they were made.
"""

from __future__ import annotations

import itertools
import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from memories.models import Memory, Verdict
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, keyword_index, keyword_search, recall
from memories.recall.query import index_terms, read_query
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TAGS = ("disk", "Disk", 'it\'s "so"', "größe", "a b", "50%", "_")
SERVICES = (None, "plex", "db-1", "wg0", "größe")
KINDS = (("ops", "timing"), ("ops", "remediation"), ("knowledge", "operations"), ("agent", "preference"))
WORDS = [
    "tunnel",
    "drops",
    "slowly",
    "wg0",
    "nightly",
    "backup",
    "größe",
    "2.1.330",
    "/var/lib",
    "no",
    "route",
    "to",
    "host",
    "🙂",
]


@pytest.fixture
def house():
    """90 memories over every value of every filter; `made` is what was stored, by id."""
    keyword_index.forget()
    drawn = random.Random(20260501)
    projects = [ProjectFactory(slug="alpha"), ProjectFactory(slug="beta")]
    rows = []
    for place in range(90):
        at = NOON - timedelta(days=drawn.randrange(60), hours=place % 24)
        taxonomy, category = drawn.choice(KINDS)
        rows.append(
            Memory(
                observation=f"Anchor {place}: " + " ".join(drawn.choices(WORDS, k=drawn.randrange(3, 12))),
                project=drawn.choice([None, *projects]),
                agent=drawn.choice([None, "scout", "mender"]),
                service=drawn.choice(SERVICES),
                taxonomy=taxonomy,
                category=category,
                tags=sorted(drawn.sample(TAGS, drawn.randrange(4))),
                verdict=drawn.choice([Verdict.ALLOW, Verdict.ALLOW, Verdict.HOLD]),
                active=drawn.random() > 0.1,
                created_at=at - timedelta(days=drawn.randrange(30)),
                updated_at=at,
            )
        )
    Memory.objects.bulk_create(rows)
    keyword_index.catch_up()
    yield projects, {row.pk: row for row in Memory.objects.all()}
    keyword_index.forget()


def expected(made: dict[int, Memory], where: Filters) -> set[int]:
    """What the filters let through, as DESIGN and the docstring of Filters say it."""
    found = set()
    for pk, row in made.items():
        inside = where.project == ANY_PROJECT or row.project_id in (None, where.project)
        inside &= where.agent == ANY_AGENT or row.agent in (None, where.agent)
        inside &= where.services is None or row.service in where.services
        inside &= where.taxonomy is None or row.taxonomy == where.taxonomy
        inside &= where.categories is None or row.category in where.categories
        inside &= all(tag in row.tags for tag in where.tags)
        inside &= where.since is None or row.updated_at >= where.since
        inside &= where.until is None or row.updated_at < where.until
        inside &= where.as_of is None or row.created_at <= where.as_of
        inside &= where.include_hold or row.verdict == Verdict.ALLOW
        if inside and row.active:
            found.add(pk)
    return found


SCOPES = tuple(itertools.product((None, "alpha", "beta", ANY_PROJECT), (None, "scout", "nobody", ANY_AGENT)))
NARROWINGS = (
    {},
    *({"services": given} for given in [(), (None,), ("plex",), ("plex", None), ("größe", "db-1"), ("PLEX",)]),
    *({"taxonomy": given} for given in ("ops", "knowledge", "agent")),
    *({"categories": given} for given in [(), ("timing",), ("timing", "operations"), ("none such",)]),
    *({"tags": (tag,)} for tag in (*TAGS, "none", "dis", '"', "disk,Disk", "%")),
    {"tags": ("disk", "Disk")},
    {"include_hold": True},
    {"since": NOON - timedelta(days=20)},
    {"until": NOON - timedelta(days=20)},
    {"since": NOON - timedelta(days=40), "until": NOON - timedelta(days=5), "services": ("wg0", "db-1")},
    {"as_of": NOON - timedelta(days=30)},
    {"as_of": NOON - timedelta(days=30), "tags": ("größe",), "include_hold": True},
    {"taxonomy": "ops", "categories": ("timing", "operations"), "services": (None, "wg0"), "include_hold": True},
)


@pytest.mark.parametrize(("project", "agent"), SCOPES)
def test_a_scope_with_any_filter_gives_what_a_plain_reading_gives(project, agent, house):
    projects, made = house
    of = {one.slug: one.pk for one in projects}
    given = 0
    for narrowing in NARROWINGS:
        where = Filters(project=of.get(project, project), agent=agent, **narrowing)
        hits = recall("anchor", where, limit=100, at=NOON).hits
        found = {pk for hit in hits for pk in (hit.memory_id, *hit.collapsed)}
        wanted = expected(made, where)
        given += len(wanted)
        assert found == wanted, (project, agent, narrowing)
    assert given > 20


@pytest.mark.parametrize("query", ["tunnel", "why does wg0 drop", "no route to host", "größe 2.1.330 /var/lib", "🙂"])
def test_the_words_weigh_what_the_formula_says(query, house):
    """Coverage and bm25 of every hit, computed from the texts: nothing of them is the database's own."""
    _, made = house
    terms = read_query(query).terms
    texts = {
        pk: index_terms(keyword_index.text_of(*(getattr(row, name) for name in keyword_index.TEXTS)))
        for pk, row in made.items()
    }
    size, mean = len(texts), sum(map(len, texts.values())) / len(texts)
    holding = {term: sum(term in said for said in texts.values()) for term in terms}
    idf = {term: math.log(1 + max(0, size - df + 0.5) / (df + 0.5)) for term, df in holding.items()}
    hits = recall(query, Filters(project=ANY_PROJECT, agent=ANY_AGENT), limit=100, at=NOON).hits
    for hit in hits:
        said = texts[hit.memory_id]
        assert hit.parts.coverage == pytest.approx(
            sum(idf[term] for term in terms if term in said) / (sum(idf.values()) or 1.0)
        )
        k1, b = keyword_search.K1, keyword_search.B
        norm = k1 * (1 - b + b * len(said) / mean)
        score = sum(idf[term] * said.count(term) * (k1 + 1) / (said.count(term) + norm) for term in terms)
        assert (hit.parts.keyword_score or 0.0) == pytest.approx(score)
    assert any(holding.values()) == bool(hits)
    order = [(-hit.score, -(hit.updated_at or NOON).timestamp(), -hit.memory_id) for hit in hits]
    assert order == sorted(order)
