"""`manage.py project`."""

from __future__ import annotations

from functools import partial

import pytest

from memories.models import Project
from tests.support import commands
from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db


run = partial(commands.run, "project")
result = partial(commands.result, "project")


def test_add_makes_a_project_which_list_and_show_have():
    code, out, _ = run("add", "web", "--name", "The web", "--description", "The shop", "--path", "/srv/web")
    assert (code, out) == (0, "Project web is added.\n")
    MemoryFactory.create_batch(2, project=Project.objects.get())
    [row] = result("list")
    assert (row["slug"], row["name"], row["path"], row["memories_in_prompt"]) == ("web", "The web", "/srv/web", 10)
    assert "/srv/web" in run("list")[1]
    shown = run("show", "web")[1]
    assert "The shop" in shown
    assert "2 active" in shown
    assert "pattern never, warning after 90 d, learning after 180 d, context after 30 d" in shown


def test_without_projects_list_says_how_to_add_one():
    assert run("list")[1] == "No project yet.\n"
    assert "project add" in run("list", "--json")[1]


def test_set_takes_each_setting_and_leaves_those_that_are_not_given():
    ProjectFactory(slug="web", name="The web", default_expiry={"context": 7, "learning": 5})
    lifetimes = ["--expire", "warning=9", "--expire", "context=never", "--expire", "learning=default"]
    numbers = ["--memories-in-prompt", "3", "--memory-budget", "0", "--used-means", "injected"]
    data = result("set", "web", *lifetimes, *numbers, "--path", "/srv/web")
    assert sorted(data["changed"]) == ["default_expiry", "memories_in_prompt", "memory_budget", "path", "used_means"]
    project = Project.objects.get()
    assert project.default_expiry == {"warning": 9, "context": None}
    assert (project.memories_in_prompt, project.memory_budget, project.used_means) == (3, 0, "injected")
    assert (project.name, project.path) == ("The web", "/srv/web")
    assert data["expires_after_days"] == {"pattern": None, "warning": 9, "learning": 180, "context": None}
    assert run("set", "web", "--path", "/srv/web")[1] == "Project web was like this already.\n"
    assert "context never" in run("show", "web")[1]


def test_set_says_whether_whole_sessions_are_observed():
    ProjectFactory(slug="web")
    assert "observed:    yes" in run("show", "web")[1]
    assert result("set", "web", "--observed", "no")["changed"] == ["observed"]
    assert not Project.objects.get().observed
    result("set", "web", "--name", "The web")
    assert not Project.objects.get().observed


def test_set_takes_the_path_of_memory_md_and_an_empty_one_takes_it_back():
    ProjectFactory(slug="web", path="/srv/web")
    assert result("set", "web", "--memory-path", "docs/MEMORY.md")["changed"] == ["memory_path"]
    assert "memory file: docs/MEMORY.md" in run("show", "web")[1]
    assert "below the repository" in run("set", "web", "--memory-path", "../MEMORY.md")[2]
    assert result("set", "web", "--memory-path", "")["changed"] == ["memory_path"]
    assert Project.objects.get().memory_path == ""


def test_set_takes_the_settings_of_agent_files():
    ProjectFactory(slug="web", files_limits={"line": 100})
    limits = ["--file-limit", "items=20", "--file-limit", "line=default"]
    assert result("set", "web", "--files-of", "claude-code", *limits, "--takes-phrases", "yes")["changed"]
    project = Project.objects.get()
    assert (project.files_folder, project.files_pattern) == (".claude/agent-memory", "{agent}/MEMORY.md")
    assert (project.files_limits, project.takes_phrases) == ({"items": 20}, True)
    assert ".claude/agent-memory/{agent}/MEMORY.md" in run("show", "web")[1]
    assert run("set", "web", "--file-limit", "pages=2")[0] == 2


def test_set_empties_a_text():
    ProjectFactory(slug="web", name="The web")
    assert result("set", "web", "--name", "")["name"] == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "web"], "slug: Project with this Slug already exists."),
        (["add", "two words"], "slug: Enter a valid “slug”"),
        (["add", "x", "--memories-in-prompt", "0"], "memories_in_prompt: Ensure this value is greater"),
        (["set", "web"], "Nothing to change was given"),
        (["set", "web", "--memory-budget", "-1"], "memory_budget: Ensure this value is greater"),
        (["set", "web", "--used-means", "seen"], "used_means: Value 'seen' is not a valid choice"),
        (["set", "web", "--expire", "warning=0"], "warning expires after 1 to 3,650 days, or never"),
        (["set", "web", "--files-folder", "/etc"], "files_folder: Give a folder below the repository"),
        (["set", "web", "--files-folder", ".claude/agents"], "files_folder: Programs obey what is in such a folder"),
        (["set", "web", "--path", "/srv/web/.git"], "path: With files_folder this is where git or Claude Code obeys"),
        (["set", "web", "--memory-path", ".git/MEMORY.md"], "memory_path: Programs obey what is in such a folder"),
        (["set", "web", "--files-pattern", "x.md"], "files_pattern: Give a file's name with {agent} once"),
        (["set", "web", "--file-limit", "items=900"], "items is a whole number from 1 to 200"),
        (["set", "wep", "--name", "x"], "There is no project 'wep'"),
        (["show", "wep"], "Known projects: web"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_changes(arguments, said):
    ProjectFactory(slug="web")
    before = list(Project.objects.values())
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert said in err
    assert list(Project.objects.values()) == before


@pytest.mark.parametrize(
    "text", ["timing=5", "warning", "warning=soon", "warning=-1", "warning=1.5", "=5", "warning=²"]
)
def test_a_lifetime_that_cannot_be_read_is_wrong_usage(text):
    ProjectFactory(slug="web")
    assert run("set", "web", "--expire", text)[0] == 2
    assert Project.objects.get().default_expiry == {}
