"""All that a session is told, of all its sources: nothing twice, each line with its reason, the same wherever asked."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from claudeops.features.trace.service import trace
from claudeops.features.trace.steps import End
from memories.injection.selector import TOLD_ONCE, key_of
from memories.models import AgentFile, AgentFileEntry, CommitKind, Memory, MemoryFile, MemoryFileCommit, ProposalState
from sessions_app.models import Session, Status
from sessions_app.runner.launch import inject
from sessions_app.runner.parts import answer_for
from sessions_app.runner.prompt import selected_for
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, ProposalFactory, SessionFactory

pytestmark = pytest.mark.django_db
AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
TASK = "Restart the queue of the shop"

CURATED = "The queue of the shop takes a minute to restart"
OF_FILE = "Tests need the queue of the shop"
OF_PROJECT = "The queue of the shop is restarted by its own script"
KNOWN = "The queue of the shop loses nothing when it restarts"
OPERATIONAL = "The queue of the shop restarts at night"
AGAIN = {CURATED, OF_FILE, OF_PROJECT, KNOWN}


@pytest.fixture
def agent():
    """An agent whose every source says what the sources before it say, too, and one thing more."""
    project = ProjectFactory(slug="shop", name="Shop", path="/srv/shop")
    text = f"# MEMORY.md\n\n## Operations\n\n- (2026-05-01) {CURATED}\n"
    file = MemoryFile.objects.create(
        project=project, host="here", repository="/srv/shop", path="MEMORY.md", text=text, sha256="0" * 64
    )
    commit = MemoryFileCommit.objects.create(
        file=file, sha="a" * 40, at=timezone.now(), kind=CommitKind.PROMOTION, author="claudeops", is_ours=True
    )
    commit.proposal = ProposalFactory(file=file, state=ProposalState.PROMOTED, commit=commit.sha)
    commit.save()
    file.blame = [commit.pk] * len(text.splitlines())
    file.save()

    of_agent = AgentFile.objects.create(
        project=project,
        agent="mender",
        path="mender_agent.md",
        text=f"# Mender\n\n## Common Mistakes to Avoid\n- {CURATED}\n- {OF_FILE}\n",
    )
    for position, text in enumerate((CURATED, OF_FILE)):
        line = MemoryFactory(
            taxonomy="agent", category="mistake", service=None, project=project, agent="mender", observation=text
        )
        AgentFileEntry.objects.create(
            file=of_agent, memory=line, section="Common Mistakes to Avoid", text=text, since=AT, position=position
        )
    told = (
        ("project", "pattern", (CURATED.upper() + ".", OF_FILE, OF_PROJECT)),
        ("knowledge", "operations", (CURATED, OF_FILE, OF_PROJECT, KNOWN)),
        ("ops", "behavior", (CURATED, OF_FILE, OF_PROJECT, KNOWN, OPERATIONAL)),
    )
    for taxonomy, category, texts in told:
        for text in texts:
            MemoryFactory(
                taxonomy=taxonomy,
                category=category,
                service=None,
                project=project,
                observation=text,
                confidence=0.9,
                created_at=AT,
                updated_at=AT,
            )
    return AgentFactory(slug="mender", name="Mender", tier=1, project=project)


def selected(agent, task=TASK):
    return selected_for(Session(agent=agent, project=agent.project, tier=1, task=task), at=AT)


def texts(entries):
    return [entry["observation"] for entry in entries]


def test_what_one_part_says_no_later_part_repeats(agent):
    found = selected(agent)
    assert [one.shown for one in found.curated.included] == [CURATED]
    assert texts(found.agent.included) == [OF_FILE]
    assert texts(found.project.included) == [OF_PROJECT]
    assert texts(found.knowledge.included) == [KNOWN]
    assert texts(found.ops.included) == [OPERATIONAL]
    parts = (
        ("file", found.agent, 1),
        ("project", found.project, 2),
        ("knowledge", found.knowledge, 3),
        ("ops", found.ops, 4),
    )
    for name, part, again in parts:
        left_out = [entry for entry in part.left_out if entry["reason"] == TOLD_ONCE]
        assert len(left_out) == again, name
        assert {key_of(entry["observation"]) for entry in left_out} <= set(map(key_of, AGAIN)), name


def test_what_has_no_room_where_it_would_stand_first_is_told_where_it_stands_next(agent, settings):
    settings.CLAUDEOPS_CURATED_BUDGET = 1
    found = selected(agent)
    assert not found.curated.included
    assert CURATED in texts(found.agent.included)
    assert key_of(CURATED) not in map(key_of, texts(found.project.included))
    assert CURATED not in texts(found.knowledge.included) + texts(found.ops.included)


def test_the_same_memories_give_the_same_bytes(agent):
    session = Session(agent=agent, project=agent.project, tier=1, task=TASK)
    first, second = (selected(agent).composed(session, handoff_file="handoff.json", at=AT) for _ in range(2))
    assert first == second
    assert selected(agent).ops.text == selected(agent).ops.text


def test_each_line_that_is_told_says_where_it_comes_from_and_why(agent):
    answer = answer_for(agent, None, TASK, at=AT)
    parts = {part.name: part for part in answer.parts if part.name != "other"}
    assert list(parts) == ["curated", "file", "project", "knowledge", "ops"]
    (curated,) = parts["curated"].lines
    assert (curated.text, curated.why) == (f"- (2026-05-01) {CURATED}", "Operations, line 5, by claudeops")
    assert curated.file == MemoryFile.objects.get().project.slug
    for name, text in (("project", OF_PROJECT), ("knowledge", KNOWN), ("ops", OPERATIONAL)):
        (line,) = parts[name].lines
        assert (line.text, line.memory) == (text, Memory.objects.get(taxonomy=name, observation=text).pk)
        assert line.why
    assert parts["file"].lines[-1].text == f"- {OF_FILE}"
    assert len(answer.once) == 10
    assert answer.tokens <= answer.budget
    for line in (CURATED, OF_FILE, OF_PROJECT, KNOWN):
        assert answer.prompt.count(line) == 1, line
    assert not Session.objects.exists()


def test_the_command_the_prompt_and_the_receipt_tell_the_same(agent):
    """`memory context`, `session compose` and the answer line by line."""
    Memory.objects.update(created_at=timezone.now(), updated_at=timezone.now())
    answers = {}
    for command in (("memory", "context"), ("session", "compose")):
        out = StringIO()
        call_command(*command, "--agent", "mender", "--task", TASK, "--json", stdout=out)
        answers[command] = json.loads(out.getvalue())["result"]
    context, composed = answers["memory", "context"], answers["session", "compose"]
    for result in (context, composed):
        result["receipt"]["knowledge"].pop("trace")  # it says how long the recall took
    assert context["receipt"] == composed["receipt"]
    assert context["text"] == composed["injected_text"]
    answer = answer_for(agent, None, TASK, at=timezone.now())
    told = {line.memory for part in answer.parts for line in part.lines if line.memory}
    included = {entry["id"] for entry in [*context["receipt"]["included"], *context["included"]]}
    assert told == included
    for section in context["sections"]:
        assert section["text"] in composed["prompt"], section["title"]


def test_why_it_was_not_remembered_says_that_another_part_told_it(agent):
    session = SessionFactory(agent=agent, project=agent.project, status=Status.QUEUED, task=TASK)
    inject(session, at=AT)
    Session.objects.update(started_at=AT)
    for taxonomy in ("project", "knowledge", "ops"):
        again = Memory.objects.get(taxonomy=taxonomy, observation=OF_FILE)
        diagnosis = trace(str(again.pk), session_id=session.pk)
        assert diagnosis.end is End.TOLD, taxonomy
        assert "in another part of its prompt, which says the same" in diagnosis.as_text()


def test_an_agent_whose_template_is_broken_still_has_an_answer(agent):
    agent.prompt_template = "{% if %}"
    agent.save()
    answer = answer_for(agent, None, TASK, at=AT)
    assert answer.why and not answer.prompt
    assert {part.name for part in answer.parts} >= {"curated", "ops"}


def test_nothing_known_is_an_answer():
    answer = answer_for(None, None, "", at=AT)
    assert [part for part in answer.parts if part.name != "other"] == []
    assert answer.left_out == ()
