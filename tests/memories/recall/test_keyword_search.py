"""What the words' side reads when rare terms find little: common ones together, small scopes, and no other scope."""

from __future__ import annotations

import pytest

from memories.models import Memory
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, keyword_index, keyword_search
from memories.recall.filters import scope_of
from memories.recall.keyword_search import KeywordHits
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
ALL = Filters(project=ANY_PROJECT, agent=ANY_AGENT)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Five memories are as many as the rare terms may occur in, and as are read."""
    keyword_index.forget()
    monkeypatch.setattr(keyword_search, "SMALL_SCOPE", 1)
    monkeypatch.setattr(keyword_search, "ENOUGH", 5)
    yield
    keyword_index.forget()


def search(terms: tuple[str, ...], where: Filters, limit: int = 5) -> KeywordHits:
    return keyword_search.search(terms, scope_of(where), limit)


def stored(texts: list[str], **given: object) -> list[Memory]:
    made = [MemoryFactory(observation=text, service=None, **given) for text in texts]
    keyword_index.catch_up()
    return made


def test_what_holds_several_common_terms_is_found_below_any_number_that_hold_one():
    old = stored(["The backup of the tunnel is slow"])[0]
    rare = stored(["The printer jams"])[0]
    stored([f"{word} number {place}" for place in range(10) for word in ("backup", "tunnel", "slow")])
    found = search(("printer", "backup", "tunnel", "slow"), ALL)
    assert set(found.best(2)) == {old.pk, rare.pk}
    assert found.coverage(old.pk) > 0.4
    assert len(found.held) < 15  # not all of them are read


def test_a_rare_term_is_found_first_and_the_common_ones_after_it():
    rare = stored(["The printer jams"])[0]
    both = stored(["A backup through the tunnel"])[0]
    stored([f"{word} number {place}" for place in range(10) for word in ("backup", "tunnel")])
    assert search(("printer", "backup", "tunnel"), ALL).best(2) == [rare.pk, both.pk]


def test_a_small_scope_is_read_whole_however_new_the_others_are(monkeypatch):
    monkeypatch.setattr(keyword_search, "SMALL_SCOPE", 4)
    small, other = ProjectFactory(), ProjectFactory()
    own = stored([f"The tunnel number {place}" for place in range(4)], project=small)
    stored([f"The tunnel {place} backup" for place in range(30)], project=other)
    found = search(("tunnel", "backup"), Filters(project=small.pk, agent=ANY_AGENT))
    assert set(found.best(100)) == {row.pk for row in own}


@pytest.mark.parametrize("limit", [5, 1000])
@pytest.mark.parametrize("small", [1, 1000])
def test_no_way_reads_anything_of_another_scope(limit, small, monkeypatch):
    monkeypatch.setattr(keyword_search, "SMALL_SCOPE", small)
    one, other = ProjectFactory(), ProjectFactory()
    texts = [f"tunnel backup {place}" for place in range(12)]
    own = stored(texts, project=one) + stored(texts, project=None)
    stored(texts, project=other)
    for terms in (("tunnel", "backup"), ("tunnel",), ("tunnel", "backup", "3")):
        found = search(terms, Filters(project=one.pk, agent=ANY_AGENT), limit)
        assert found.held.keys() <= {row.pk for row in own}
        assert found.held or (small, limit) == (1, 5)  # a large scope of old memories, and the newest are others'


def test_a_project_that_is_large_by_itself_says_nothing_of_another(monkeypatch):
    monkeypatch.setattr(keyword_search, "SMALL_SCOPE", 4)
    large, small = ProjectFactory(), ProjectFactory()
    own = stored([f"The tunnel number {place}" for place in range(4)], project=small)
    stored([f"The tunnel {place} backup" for place in range(30)], project=large)
    for project, whole in ((large, False), (small, True)):
        found = search(("tunnel", "backup"), Filters(project=project.pk, agent=ANY_AGENT))
        assert (set(found.held) == {row.pk for row in own}) == whole


@pytest.mark.django_db(transaction=True)  # within a transaction nothing is kept
def test_a_memory_that_is_not_indexed_yet_is_found_although_each_count_is_kept(monkeypatch):
    monkeypatch.setattr(keyword_index, "FEW", 0)
    stored([f"tunnel backup {place}" for place in range(3)])
    search(("tunnel", "backup"), ALL)
    new = MemoryFactory(observation="The tunnel waits for the backup", service=None)
    found = search(("tunnel", "backup"), ALL)
    assert new.pk in found.best(9)
    assert found.unindexed == 1


def test_common_terms_are_not_read_when_one_that_holds_a_rare_term_is_enough():
    rare = stored(["The printer jams"])[0]
    stored([f"backup number {place}" for place in range(10)])
    assert set(keyword_search.search(("printer", "backup"), scope_of(ALL), 5, enough=1).held) == {rare.pk}
    assert len(keyword_search.search(("printer", "backup"), scope_of(ALL), 5).held) > 1
    assert keyword_search.search(("backup", "number"), scope_of(ALL), 5, enough=1).held, "there is no rare one"
