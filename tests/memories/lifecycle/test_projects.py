"""Making a project and changing its settings."""

import pytest

from memories.errors import InvalidProject, ProjectNotFound
from memories.lifecycle.projects import add_project, find_project, set_project
from memories.models import Project
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db

WRONG = [
    ("memories_in_prompt", 0, "greater than or equal to 1"),
    ("memories_in_prompt", 101, "less than or equal to 100"),
    ("memories_in_prompt", "ten", "must be an integer"),
    ("memory_budget", -1, "greater than or equal to 0"),
    ("memory_budget", 100_001, "less than or equal to 100000"),
    ("used_means", "seen", "not a valid choice"),
    ("path", "x" * 501, "at most 500 characters"),
    ("default_expiry", {"timing": 5}, "is no type"),
    ("default_expiry", [], "Give an object of days by type"),
    ("default_expiry", None, "Give an object of days by type"),
]


def test_a_project_has_ten_memories_and_500_tokens_in_a_prompt_and_uses_are_named():
    project = add_project("web")
    project.refresh_from_db()
    assert (project.memories_in_prompt, project.memory_budget, project.used_means) == (10, 500, "named")
    assert (project.path, project.name, project.default_expiry) == ("", "", {})


@pytest.mark.parametrize(("field", "value", "said"), WRONG)
def test_a_setting_that_cannot_be_is_refused_by_name_and_nothing_is_made(field, value, said):
    with pytest.raises(InvalidProject) as refused:
        add_project("web", **{field: value})
    assert list(refused.value.fields) == [field]
    assert said in str(refused.value)
    assert not Project.objects.exists()


@pytest.mark.parametrize(("field", "value", "said"), WRONG)
def test_a_setting_that_cannot_be_changes_nothing_of_a_project(field, value, said):
    project = ProjectFactory(slug="web", name="The web")
    before = Project.objects.values().get()
    with pytest.raises(InvalidProject, match=said):
        set_project(project, **{"name": "Another", field: value})
    assert Project.objects.values().get() == before
    assert project.name == "The web"


@pytest.mark.parametrize("slug", ["", "two words", "ä", "x" * 65, "a/b"])
def test_a_slug_that_cannot_be_is_refused(slug):
    with pytest.raises(InvalidProject) as refused:
        add_project(slug)
    assert "slug" in refused.value.fields


def test_a_slug_that_is_taken_is_refused():
    ProjectFactory(slug="web")
    with pytest.raises(InvalidProject, match="already exists"):
        add_project("web")


def test_a_change_writes_what_differs_alone_so_that_two_at_once_keep_each_others_fields():
    project = ProjectFactory(slug="web")
    other = Project.objects.get(pk=project.pk)
    assert set_project(other, name="The web", memory_budget=500) == ["name"]
    assert set_project(project, path="/srv/web") == ["path"]
    found = Project.objects.get(pk=project.pk)
    assert (found.name, found.path) == ("The web", "/srv/web")


def test_a_project_that_was_deleted_meanwhile_is_not_made_again():
    project = ProjectFactory(slug="web")
    Project.objects.all().delete()
    with pytest.raises(ProjectNotFound):
        set_project(project, name="The web")


def test_a_project_is_found_by_its_slug_and_an_unknown_one_names_those_that_are_known():
    project = ProjectFactory(slug="web")
    assert find_project("web") == project
    with pytest.raises(ProjectNotFound, match="no project 'wep'") as refused:
        find_project("wep")
    assert "web" in refused.value.fix
