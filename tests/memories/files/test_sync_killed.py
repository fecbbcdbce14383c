"""A sync that is really killed between two lines, two at once, and an editor at work: nothing is lost or done twice."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from memories.files.sync import sync_file
from memories.lifecycle import verbs
from memories.models import AgentFile, AgentFileConflict, Change, Disagreement, Memory, MemoryChange, Project
from tests.memories.files.conftest import Repository
from tests.support.processes import call, killed
from tests.support.thorough import one_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

Learn = Callable[..., Memory]

SYNC = """
from memories.files.sync import sync_file
from memories.models import Project
sync_file(Project.objects.get(), "research")
"""
STORE, FILE = "memories.store", "claudeops.lib.files"
SYNCED, TAKEN = "memories.files.sync", "memories.files.take_in"


@pytest.fixture
def changed(project: Project, repository: Repository, learn: Learn) -> None:
    """A file in step, then changes of each kind on both sides, of which one is a conflict and one has no room."""
    project.files_limits = {"items": 2}
    project.save()
    learn("Tests need the queue")
    learn("The cache is warm after a deployment", "performance")
    suite = learn("The suite takes 4 minutes", "learning")
    stays = learn("Retry the upload once", "strategy", "research")
    leaves = learn("Migrations run before the web server", "architecture")
    sync_file(project, "research", create=True)
    repository.change("- Tests need the queue\n", "- Tests need the queue and the mailer\n- Run `make lint` first\n")
    repository.change("- The cache is warm after a deployment\n", "")
    repository.change("The suite takes 4 minutes", "The suite takes 5 minutes")
    repository.commit()
    verbs.edit(suite, by="operator", observation="The suite takes 6 minutes")
    verbs.edit(stays, by="operator", observation="Retry the upload twice")
    verbs.deactivate(leaves, by="operator")
    learn("Backups are in the second bucket", "architecture")
    verbs.set_confidence(learn("Ask before touching tax tables"), 0.4, by="operator")


LINES = {
    "Tests need the queue and the mailer",
    "Run `make lint` first",
    "The suite takes 5 minutes",
    "Retry the upload twice",
    "Backups are in the second bucket",
}


def expect_everything_once(project: Project, repository: Repository) -> None:
    text = repository.text()
    assert Counter(row[2:] for row in text.splitlines() if row.startswith("- ")) == Counter(LINES)
    active = Memory.objects.filter(active=True).values_list("observation", flat=True)
    assert Counter(active) == Counter(
        LINES - {"The suite takes 5 minutes"} | {"The suite takes 6 minutes", "Ask before touching tax tables"}
    )
    conflict = AgentFileConflict.objects.get()
    assert (conflict.file_text, conflict.other_text) == ("The suite takes 5 minutes", "The suite takes 6 minutes")
    assert Counter(MemoryChange.objects.filter(actor="git:Ada").values_list("kind", flat=True)) == {
        Change.CREATED: 1,
        Change.EDITED: 1,
        Change.DEACTIVATED: 1,
    }
    file = AgentFile.objects.get()
    out = file.entries.exclude(left_because="").get()
    assert out.text == "Ask before touching tax tables"
    assert file.entries.count() == len(LINES) + 1
    assert file.state == "ok"
    assert sorted(os.listdir(repository.file().parent)) == ["README.md", "research_agent.md"]


@pytest.mark.parametrize(
    ("event", "module", "function"),
    one_of(
        [
            pytest.param("return", STORE, "place", id="a line is stored, and not noted"),
            pytest.param("return", TAKEN, "_add", id="a line is stored"),
            pytest.param("return", TAKEN, "_change", id="a change is stored"),
            pytest.param("return", TAKEN, "_remove", id="a removal is stored"),
            pytest.param("return", "memories.files.conflicts", "note", id="a conflict is noted, and not committed"),
            pytest.param("return", TAKEN, "take_in", id="all changes of the person are stored"),
            pytest.param("return", SYNCED, "_mark_left", id="what has no room is noted"),
            pytest.param("call", FILE, "replace_in", id="before the file is written"),
            pytest.param("return", FILE, "_take_over", id="while the file is written"),
            pytest.param("return", FILE, "replace_in", id="the file is written"),
            pytest.param("call", SYNCED, "_settle", id="before it is noted"),
            pytest.param("return", SYNCED, "_note_lines", id="while it is noted"),
            pytest.param("return", SYNCED, "_bring_in_step", id="after all of it"),
        ]
    ),
)
def test_a_sync_that_is_killed_is_completed_by_the_next(
    project: Project, repository: Repository, changed: None, event: str, module: str, function: str
) -> None:
    killed(SYNC, event, module, function)
    done = sync_file(project, "research")
    assert not done.problem
    assert not sync_file(project, "research").changed
    expect_everything_once(project, repository)


def test_a_sync_that_is_killed_again_and_again_comes_to_its_end(
    project: Project, repository: Repository, changed: None
) -> None:
    for function in ("_change", "_remove", "place", "_mark_left", "replace_in"):
        module = {"place": STORE, "replace_in": FILE, "_mark_left": SYNCED}.get(function, TAKEN)
        killed(SYNC, "return", module, function)
    sync_file(project, "research")
    expect_everything_once(project, repository)


WRITER = """
from memories import store
from memories.capture.statement import Provenance, Statement
from memories.files.sync import sync_file
from memories.models import Project

project = Project.objects.get()
for text in {texts!r}:
    store.remember(
        Statement("mistake", text, taxonomy="agent"),
        Provenance("run", "agent:research", project_id=project.pk, agent="research"),
    )
    done = sync_file(project, "research", create=True)
    assert not done.problem, done
"""
ONE = ("Tests need the queue", "Run the linter before a push", "Backups are in the second bucket", "Ask about tax")
OTHER = ("Old browsers lack grid", "Invoices round half up", "The mailer drops long subjects", "Cron uses local time")


def test_two_writers_of_one_file_lose_nothing(project: Project, repository: Repository) -> None:
    writers = [call(WRITER.format(texts=texts)) for texts in (ONE, OTHER)]
    for writer in writers:
        _, err = writer.communicate()
        assert writer.returncode == 0, err
    assert not sync_file(project, "research").changed
    lines = [row[2:] for row in repository.text().splitlines() if row.startswith("- ")]
    assert not Disagreement.objects.exists()
    assert Counter(lines) == Counter([*ONE, *OTHER])
    assert AgentFile.objects.get().entries.count() == len(ONE) + len(OTHER)
    assert Memory.objects.filter(active=True).count() == len(ONE) + len(OTHER)


def soon(act: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(0.1, act)
    timer.start()
    return timer


def test_an_editor_that_puts_another_file_in_its_place_removes_nothing(
    project: Project, repository: Repository, learn: Learn
) -> None:
    memory = learn("Tests need the queue")
    sync_file(project, "research", create=True)
    text = repository.text()
    repository.file().unlink()
    timer = soon(lambda: repository.save(text.replace("the queue", "the queue and the mailer")))
    sync_file(project, "research")
    timer.join()
    sync_file(project, "research")
    memory.refresh_from_db()
    assert (memory.observation, memory.active) == ("Tests need the queue and the mailer", True)
    assert Memory.objects.count() == 1
    assert "- Tests need the queue and the mailer\n" in repository.text()


def test_an_editor_that_empties_the_file_before_it_writes_removes_nothing(
    project: Project, repository: Repository, learn: Learn
) -> None:
    memory = learn("Tests need the queue")
    sync_file(project, "research", create=True)
    text = repository.text()
    repository.save("")
    timer = soon(lambda: repository.save(text.replace("the queue", "the queue and the mailer")))
    sync_file(project, "research")
    timer.join()
    sync_file(project, "research")
    memory.refresh_from_db()
    assert (memory.observation, memory.active) == ("Tests need the queue and the mailer", True)
    assert list(MemoryChange.objects.filter(memory=memory).values_list("kind", flat=True)) == ["created", "edited"]
