"""What the words' side reads when rare terms find little: common ones together, small scopes, and no other scope."""

from __future__ import annotations

import pytest

from memories.models import Memory
from memories.recall import ANY_AGENT, ANY_PROJECT, Filters, keyword_index, keyword_search, term_statistics
from tests.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
ALL = Filters(project=ANY_PROJECT, agent=ANY_AGENT)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Five memories are as many as a term may stand in; of each set of common terms the newest three are looked at."""
    keyword_search.forget()
    for name, value in {"MOST_CANDIDATES": 5, "MOST_POSTED": 5, "SMALL_SCOPE": 1, "ENOUGH": 5, "NEWEST": 3}.items():
        monkeypatch.setattr(keyword_search, name, value)
    yield
    keyword_search.forget()


def stored(texts: list[str], **given: object) -> list[Memory]:
    made = [MemoryFactory(observation=text, service=None, **given) for text in texts]
    keyword_index.catch_up()
    return made


def test_what_holds_several_common_terms_is_found_below_any_number_that_hold_one():
    old = stored(["The backup of the tunnel is slow"])[0]
    rare = stored(["The printer jams"])[0]
    stored([f"{word} number {place}" for place in range(10) for word in ("backup", "tunnel", "slow")])
    found = keyword_search.search(("printer", "backup", "tunnel", "slow"), ALL)
    assert set(found.best(2)) == {old.pk, rare.pk}
    assert found.coverage(old.pk) > 0.4
    assert len(found.places) < 15  # not all of them are read


def test_terms_that_never_meet_are_not_followed_through_all_memories(monkeypatch):
    """Two common terms are looked for among the newest that should hold both, and not below these."""
    both = stored(["The backup through the tunnel"])[0]
    stored(["The printer jams"])
    stored([f"{word} number {place}" for place in range(40) for word in ("backup", "tunnel")])
    monkeypatch.setattr(keyword_search, "SPAN", 1000)
    assert both.pk in keyword_search.search(("printer", "backup", "tunnel"), ALL).places
    monkeypatch.setattr(keyword_search, "MOST_WALKED", 20)
    assert both.pk not in keyword_search.search(("printer", "backup", "tunnel"), ALL).places


def test_a_rare_term_is_found_first_and_the_common_ones_after_it():
    rare = stored(["The printer jams"])[0]
    both = stored(["A backup through the tunnel"])[0]
    stored([f"{word} number {place}" for place in range(10) for word in ("backup", "tunnel")])
    assert keyword_search.search(("printer", "backup", "tunnel"), ALL).best(2) == [rare.pk, both.pk]


def test_common_terms_that_stand_in_few_places_are_looked_at_everywhere(monkeypatch):
    monkeypatch.setattr(keyword_search, "MOST_POSTED", 100)
    made = stored(["The printer jams"])
    made += stored([f"{word} number {place}" for place in range(10) for word in ("backup", "tunnel")])
    assert set(keyword_search.search(("printer", "backup", "tunnel"), ALL).best(100)) == {row.pk for row in made}


def test_a_small_scope_is_read_whole_however_new_the_others_are(monkeypatch):
    monkeypatch.setattr(keyword_search, "SMALL_SCOPE", 4)
    small, other = ProjectFactory(), ProjectFactory()
    own = stored([f"The tunnel number {place}" for place in range(4)], project=small)
    stored([f"The tunnel {place} backup" for place in range(30)], project=other)
    found = keyword_search.search(("tunnel", "backup"), Filters(project=small.pk, agent=ANY_AGENT))
    assert set(found.best(100)) == {row.pk for row in own}


@pytest.mark.parametrize("posted", [5, 1000])
@pytest.mark.parametrize("small", [1, 1000])
def test_no_way_reads_anything_of_another_scope(posted, small, monkeypatch):
    monkeypatch.setattr(keyword_search, "MOST_POSTED", posted)
    monkeypatch.setattr(keyword_search, "SMALL_SCOPE", small)
    one, other = ProjectFactory(), ProjectFactory()
    texts = [f"tunnel backup {place}" for place in range(12)]
    own = stored(texts, project=one) + stored(texts, project=None)
    stored(texts, project=other)
    for terms in (("tunnel", "backup"), ("tunnel",), ("tunnel", "backup", "3")):
        found = keyword_search.search(terms, Filters(project=one.pk, agent=ANY_AGENT))
        assert found.places.keys() <= {row.pk for row in own}
        assert found.places or (small, posted) == (1, 5)  # a large scope of old memories, and the newest are others'


def test_a_scope_found_large_is_not_counted_again_for_a_while(django_assert_num_queries):
    project = ProjectFactory()
    stored([f"tunnel backup {place}" for place in range(12)], project=project)
    where = Filters(project=project.pk, agent=ANY_AGENT)
    first = keyword_search.search(("tunnel", "backup", "3"), where)
    # The collection, the terms' counts with what is not indexed yet, the rarest one, those of several, their terms.
    with django_assert_num_queries(5):
        assert keyword_search.search(("tunnel", "backup", "3"), where).best(9) == first.best(9)


def test_what_belongs_to_all_projects_is_found_large_once_for_all_of_them(django_assert_num_queries):
    stored([f"tunnel backup {place}" for place in range(12)], project=None)
    one, other = (Filters(project=ProjectFactory().pk, agent=ANY_AGENT) for _ in range(2))
    with django_assert_num_queries(6):  # how large the scope is, beside the five
        first = keyword_search.search(("tunnel", "backup", "3"), one)
    with django_assert_num_queries(5):
        assert keyword_search.search(("tunnel", "backup", "3"), other).best(9) == first.best(9)


def test_a_project_that_is_large_by_itself_says_nothing_of_another(monkeypatch):
    monkeypatch.setattr(keyword_search, "SMALL_SCOPE", 4)
    large, small = ProjectFactory(), ProjectFactory()
    own = stored([f"The tunnel number {place}" for place in range(4)], project=small)
    stored([f"The tunnel {place} backup" for place in range(30)], project=large)
    for project, whole in ((large, False), (small, True)):
        found = keyword_search.search(("tunnel", "backup"), Filters(project=project.pk, agent=ANY_AGENT))
        assert (set(found.places) == {row.pk for row in own}) == whole


@pytest.mark.django_db(transaction=True)  # within a transaction nothing is kept
def test_a_memory_that_is_not_indexed_yet_is_found_although_each_count_is_kept(monkeypatch):
    monkeypatch.setattr(term_statistics, "FEW", 0)
    monkeypatch.setattr(term_statistics, "SOME", 0)
    stored([f"tunnel backup {place}" for place in range(3)])
    keyword_search.search(("tunnel", "backup"), ALL)
    new = MemoryFactory(observation="The tunnel waits for the backup", service=None)
    found = keyword_search.search(("tunnel", "backup"), ALL)
    assert new.pk in found.best(9)
    assert found.unindexed == 1
