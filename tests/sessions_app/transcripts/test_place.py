"""The project of a folder is the one whose repository is nearest above it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.transcripts.place import nearest, project_at
from tests.support.factories import ProjectFactory


def test_the_longest_path_above_a_folder_is_taken():
    paths = {1: "/srv", 2: "/srv/app", 3: "/srv/app/web"}
    assert [nearest(one, paths) for one in ("/srv/app/api", "/srv/app", "/srv/app/web/x", "/srv/application")] == [
        2,
        2,
        3,
        1,
    ]


def test_what_is_no_absolute_path_is_nowhere():
    assert nearest("/srv/app", {1: "", 2: "srv", 3: "."}) is None
    assert nearest("", {1: "/srv"}) is None


PARTS = st.lists(st.sampled_from(["a", "b", "..", "ä b", "c\0"]), max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(folder=PARTS | st.text(max_size=20), paths=st.dictionaries(st.integers(1, 9), PARTS | st.text(max_size=9)))
def test_any_text_is_a_folder_or_none(folder, paths):
    found = nearest(folder, paths)
    assert found is None or folder.startswith(("/", paths[found]))


@pytest.mark.django_db
def test_links_are_followed_on_both_sides(tmp_path):
    (tmp_path / "real" / "src").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    project = ProjectFactory(path=f"{tmp_path}/link/")
    assert project_at(f"{tmp_path}/real/src") == project
    assert project_at(f"{tmp_path}/link/src") == project
    assert project_at(f"{tmp_path}/real-other") is None


@pytest.mark.django_db
def test_a_path_that_this_host_does_not_have_is_compared_as_written():
    project = ProjectFactory(path="/home/user/far/away")
    assert project_at("/home/user/far/away/src") == project


@pytest.mark.django_db
def test_a_folder_that_no_file_system_has_is_nowhere(django_assert_num_queries):
    ProjectFactory(path="/srv")
    with django_assert_num_queries(0):
        assert project_at("/srv" + "/a" * 1_000_000) is None


@pytest.mark.django_db
def test_of_two_projects_with_one_path_the_older_is_taken():
    first = ProjectFactory(path="/srv/app")
    ProjectFactory(path="/srv/app")
    assert project_at("/srv/app") == first


@pytest.mark.django_db
def test_a_limited_caller_finds_its_own_project_only():
    outer, inner = ProjectFactory(path="/srv"), ProjectFactory(path="/srv/app")
    assert project_at("/srv/app/src", within=outer.pk) == outer
    assert project_at("/srv/lib", within=inner.pk) is None
    assert project_at("/srv/app", within=None) is None


@pytest.mark.django_db
def test_the_number_of_queries_does_not_grow_with_the_projects(django_assert_num_queries):
    ProjectFactory.create_batch(10, path="/srv/app")
    with django_assert_num_queries(2):
        project_at("/srv/app/src")
    ProjectFactory.create_batch(10, path="/srv/other")
    with django_assert_num_queries(2):
        project_at("/srv/app/src")
