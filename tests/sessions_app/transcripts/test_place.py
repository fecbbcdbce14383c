"""The project of a folder is the one whose repository is nearest above it."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.transcripts import place
from sessions_app.transcripts.place import nearest, project_at
from tests.memories.curate.repositories import git, make
from tests.support.factories import ProjectFactory


@pytest.fixture(autouse=True)
def looks_again(monkeypatch):
    """Ask git and the file system each time: a test changes them within what is remembered for half a minute."""
    for name in ("_resolved", "_worktrees", "_twin"):
        monkeypatch.setattr(place, name, getattr(place, name).__wrapped__)


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


@pytest.fixture
def main(tmp_path):
    """The main checkout of a project's repository, with a remote."""
    folder = make(tmp_path / "zurich", "# Memory\n").parent
    git(folder, "remote", "add", "origin", "git@example.org:team/Zurich.git")
    return folder


@pytest.mark.django_db
def test_a_worktree_is_its_main_checkout_s_project_also_when_it_was_removed_by_hand(main, tmp_path):
    ProjectFactory(path=str(tmp_path))  # above all of them
    below = ProjectFactory(path=str(main / "app"))
    project = ProjectFactory(path=str(main))
    for where in (tmp_path / "zurich-v1", tmp_path / "elsewhere" / "any name"):
        git(main, "worktree", "add", "-q", "-b", where.name.replace(" ", "-"), str(where))
        (where / "app").mkdir()
        assert project_at(str(where)) == project_at(str(where / "src")) == project
        assert project_at(str(where / "app" / "web")) == below
        shutil.rmtree(where)
        assert project_at(str(where)) == project
        git(main, "worktree", "prune")
        assert project_at(str(where), within=project.pk) is None


@pytest.mark.django_db
def test_a_project_that_is_a_worktree_has_the_main_checkout_and_keeps_to_its_own_among_several(main, tmp_path):
    git(main, "worktree", "add", "-q", str(tmp_path / "v1"))
    first = ProjectFactory(path=str(tmp_path / "v1"))
    assert project_at(str(main / "src")) == first
    second = ProjectFactory(path=str(main))
    assert (project_at(str(main)), project_at(str(tmp_path / "v1"))) == (second, first)


@pytest.mark.django_db
def test_a_worktree_of_a_bare_repository_belongs_to_the_project_of_another(main, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(main), str(tmp_path / "zurich.git"))
    for name in ("one", "two"):
        git(tmp_path / "zurich.git", "worktree", "add", "-q", str(tmp_path / name))
    project = ProjectFactory(path=str(tmp_path / "one"))
    assert project_at(str(tmp_path / "two" / "src")) == project


@pytest.mark.django_db
def test_a_second_clone_belongs_to_the_project_by_its_remote_and_a_commit_in_common(main, tmp_path, subtests):
    project = ProjectFactory(path=str(main))
    urls = (
        "git@example.org:team/Zurich.git",
        "https://ann:pw@EXAMPLE.org/team/Zurich/",
        "ssh://git@example.org:22/team/Zurich",
    )
    for number, url in enumerate((*urls, str(main))):
        with subtests.test(url):
            clone = tmp_path / f"clone-{number}"
            git(tmp_path, "clone", "-q", str(main), str(clone))
            git(clone, "remote", "set-url", "origin", url)
            git(clone, "commit", "-q", "--allow-empty", "-m", "Ahead of the other")
            git(clone, "worktree", "add", "-q", str(tmp_path / f"tree-{number}"))
            assert project_at(str(clone / "src")) == project_at(str(tmp_path / f"tree-{number}")) == project
    git(clone, "remote", "set-url", "origin", "git@example.org:team/other.git")
    assert project_at(str(clone)) is None


@pytest.mark.django_db
def test_a_folder_does_not_choose_its_project_by_what_it_says_of_itself(main, tmp_path, subtests):
    """An agent may write each of these; a session there must neither be told the project's memory nor add to it."""
    ProjectFactory(path=str(main))
    git(main, "worktree", "add", "-q", str(tmp_path / "real"))
    admin = main / ".git" / "worktrees" / "real"
    forged = {name: tmp_path / "forged" / name for name in ("remote", "gitdir", "worktree", "common", "link", "taken")}
    for folder in forged.values():
        folder.mkdir(parents=True)
    make(forged["remote"] / "in", "# Other\n")
    git(forged["remote"] / "in", "remote", "add", "origin", "git@example.org:team/Zurich.git")
    (forged["gitdir"] / ".git").write_text(f"gitdir: {main}/.git\n")
    (forged["worktree"] / ".git").write_text(f"gitdir: {admin}\n")
    make(forged["common"] / "in", "# Other\n")
    (forged["common"] / "in" / ".git" / "commondir").write_text(f"{main}/.git\n")
    (forged["link"] / ".git").symlink_to(main / ".git")
    odd = make(forged["common"] / "odd", "# Other\n").parent / ".git"
    (odd / "config").write_text("[remote]\n" + " \n" * 300_000)  # whatever it holds, it is read at once
    (odd / "worktrees" / "x").mkdir(parents=True)
    os.mkfifo(odd / "worktrees" / "x" / "gitdir")
    forged["odd"] = odd.parent
    shutil.rmtree(tmp_path / "real")
    make(tmp_path / "real", "# Another repository in its place\n")
    forged["taken"] = tmp_path / "real"
    if os.geteuid() == 0:  # only root gives files away
        git(tmp_path, "clone", "-q", str(main), str(tmp_path / "forged" / "foreign"))
        forged["foreign"] = tmp_path / "forged" / "foreign"
        os.chown(forged["foreign"] / ".git", 65534, 65534)
    for name, folder in forged.items():
        with subtests.test(name):
            assert project_at(str(folder)) is project_at(str(folder / "in")) is None


@pytest.mark.django_db
def test_a_project_s_agent_does_not_draw_the_worktrees_of_another_to_it(main, tmp_path):
    git(main, "worktree", "add", "-q", str(tmp_path / "v1"))
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / ".git").write_text(f"gitdir: {main}/.git/worktrees/v1\n")
    ProjectFactory(path=str(tmp_path / "evil"))
    assert project_at(str(tmp_path / "v1")) is None


@pytest.mark.django_db
def test_a_worktree_that_git_has_forgotten_is_known_by_its_name_and_its_branch(main, tmp_path):
    project = ProjectFactory(path=str(main))
    place = tmp_path / "zurich-v1"
    git(main, "worktree", "add", "-q", "-b", "v1", str(place))
    git(main, "worktree", "remove", str(place))
    assert project_at(str(place / "src"), branch="v1") == project
    current = git(main, "branch", "--show-current")
    for other, branch in ((place, ""), (place, "gone"), (place, current), (tmp_path / "zurichs", "v1")):
        assert project_at(str(other), branch=branch) is None
    place.mkdir()
    assert project_at(str(place), branch="v1") is None, "something else stands there now"
