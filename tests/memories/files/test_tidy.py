"""What is suggested for a file is carried out, and the file and its memories stay in step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from memories.errors import InvalidMemory
from memories.files import tidy
from memories.files.sync import sync_file
from memories.files.told import told_to
from memories.lifecycle.projects import set_project
from memories.models import AgentFile, AgentFileEntry, Inactive, Memory, Project
from tests.memories.files.conftest import Repository

Learn = Callable[..., Memory]
LINT, LINT_TOO, BACKUPS = "Run `make lint` before each push", "Run make lint before every push", "Backups run at night"


def of(project: Project, agent: str = "research") -> AgentFile:
    return AgentFile.objects.select_related("project").get(project=project, agent=agent)


def write(repository: Repository, *lines: str, section: str = "Common Mistakes to Avoid") -> None:
    """Let a person write and commit these lines."""
    repository.change(f"## {section} (Max: 15 items)\n", f"## {section} (Max: 15 items)\n" + "".join(lines))
    repository.commit()


def test_a_join_merges_the_memories_and_takes_a_line_out(project: Project, repository: Repository) -> None:
    sync_file(project, "research", create=True)
    write(repository, f"- {LINT}\n", f"- {LINT_TOO}\n")
    sync_file(project, "research")
    (one,) = tidy.optimize(of(project)).joins
    tidy.join(one, by="ada")
    sync_file(project, "research", by="ada")
    assert repository.text().count("make lint") == 1
    gone = Memory.objects.get(active=False)
    assert (gone.inactive_reason, gone.superseded_by_id) == (Inactive.MERGED, one.target.memory_id)
    assert tidy.optimize(of(project)).joins == []


def test_a_file_beyond_its_limits_is_shortened_and_its_memories_stay(project: Project, repository: Repository) -> None:
    sync_file(project, "research", create=True)
    facts = [f"The {name} job runs at {n} o'clock" for n, name in enumerate(("mail", "index", "report", "export"), 1)]
    write(repository, *(f"- {fact}\n" for fact in facts), "\nProse of a person.\n")
    sync_file(project, "research")
    set_project(project, files_limits={"items": 2})
    assert sync_file(project, "research", force=True).state == "full"
    found = tidy.optimize(of(project))
    assert found.exceeded == ["4 items in Common Mistakes to Avoid, at most 2"] and len(found.leaving) == 2
    assert all(fact in repository.text() for fact in facts)
    other = AgentFile.objects.create(project=project, agent="other")
    for row in list(AgentFileEntry.objects.all()):
        AgentFileEntry.objects.create(file=other, memory=row.memory, section=row.section, text=row.text)
    tidy.carry_out(found, of(project), by="ada")
    assert sum(fact in repository.text() for fact in facts) == 2
    assert "Prose of a person.\n" in repository.text()
    assert Memory.objects.filter(active=True).count() == 4
    left = AgentFileEntry.objects.exclude(left_because="")
    assert {row.file.agent for row in left} == {"research"}
    assert {row.left_because for row in left} == {"more than 2 items in Common Mistakes to Avoid"}
    assert of(project).state == "ok" and not tidy.optimize(of(project))
    assert not sync_file(project, "research").changed


def test_lines_that_are_taken_out_come_back_when_the_file_could_not_be_written(
    project: Project, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_file(project, "research", create=True)
    write(repository, f"- {BACKUPS}\n", "- Restart web-1 before web-2\n")
    sync_file(project, "research")
    set_project(project, files_limits={"items": 1})
    sync_file(project, "research", force=True)

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(tidy, "_edit", killed)
        tidy.carry_out(tidy.optimize(of(project)), of(project), by="ada")
    sync_file(project, "research", force=True)
    assert BACKUPS in repository.text() and Memory.objects.filter(active=True).count() == 2
    assert not AgentFileEntry.objects.exclude(left_because="").exists()


def test_clean_says_what_it_would_do_and_does_it_on_request(project: Project, repository: Repository) -> None:
    sync_file(project, "research", create=True)
    write(repository, f"- {LINT}\n", f"- {BACKUPS}\n", f"- {LINT}\n")
    sync_file(project, "research")
    before = repository.text()
    would = tidy.clean(project, by="ada", yes=False)
    assert repository.text() == before
    assert {(one.kind, one.what) for one in would} >= {("repeated", LINT), ("section", "Recent Learnings")}
    assert tidy.clean(project, by="ada", yes=True) == would
    assert repository.text().count(LINT) == 1
    assert "Recent Learnings" not in repository.text() and "## Project Architecture" in repository.text()
    assert Memory.objects.filter(active=True).count() == 2
    assert tidy.clean(project, by="ada", yes=True) == []


def test_a_cleaned_section_comes_back_with_an_entry_for_it(
    project: Project, repository: Repository, learn: Learn
) -> None:
    sync_file(project, "research", create=True)
    tidy.clean(project, by="ada", yes=True)
    learn("The suite takes 4 minutes", "learning")
    sync_file(project, "research")
    assert "## Recent Learnings (Max: 15 items)\n- The suite takes 4 minutes\n" in repository.text()


def test_a_file_that_was_empty_for_a_month_is_unused_but_not_one_with_a_word_in_it(
    project: Project, repository: Repository
) -> None:
    for agent in ("research", "qa"):
        sync_file(project, agent, create=True)
    repository.change("## Project Architecture", "Ask Ada.\n\n## Project Architecture", "qa")
    later = timezone.now() + timedelta(days=31)
    assert [one.kind for one in tidy.clean(project, by="ada", agent="research", yes=False)].count("unused") == 0
    found = [one for one in tidy.clean(project, by="ada", at=later, yes=True) if one.kind == "unused"]
    assert [(one.agent, one.what) for one in found] == [("research", ".claude-mpm/memories/research_agent.md")]
    assert not repository.file().exists() and repository.file("qa").exists()
    assert AgentFile.objects.get().agent == "qa"


def test_what_several_agents_know_becomes_a_memory_of_the_project_once(project: Project, learn: Learn) -> None:
    learn("Tests need the queue")
    learn("The tests need the queue to run", agent="qa")
    for agent in ("research", "qa"):
        sync_file(project, agent, create=True)
    (one,) = tidy.shared_of(project)
    made = Memory.objects.get(pk=tidy.accept(one, project, by="ada"))
    assert (made.taxonomy, made.category, made.source, made.project, made.agent) == (
        *("project", "warning", "human"),
        project,
        None,
    )
    assert Memory.objects.filter(taxonomy="agent", active=True).count() == 2
    assert tidy.shared_of(project) == []
    with pytest.raises(InvalidMemory):
        tidy.accept(one, project, by="ada")


def test_a_file_that_is_off_is_not_told_until_it_is_on(project: Project, learn: Learn) -> None:
    learn("Tests need the queue")
    sync_file(project, "research", create=True)
    assert told_to("research", project.pk).text
    assert tidy.switch(project, "Research Agent", on=False, by="ada", reason="It is out of date.")
    assert not tidy.switch(project, "research", on=False, by="grace", reason="Again.")
    file = of(project)
    assert (file.enabled, file.enabled_by, file.enabled_reason) == (False, "ada", "It is out of date.")
    assert not told_to("research", project.pk).text
    assert tidy.switch(project, "research", on=True, by="ada")
    assert told_to("research", project.pk).text


def test_suggestions_for_twenty_agents_ask_as_often_as_for_ten(
    project: Project, learn: Learn, django_assert_num_queries: Callable[..., object]
) -> None:
    for agents in (range(3), range(3, 6)):
        for n in agents:
            learn(f"The job {n} runs alone", agent=f"agent_{n}")
            sync_file(project, f"agent_{n}", create=True)
        with django_assert_num_queries(2):
            tidy.shared_of(project)
