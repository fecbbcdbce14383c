"""The prompt of a session, from its row and what belongs to it: the same bytes on both databases."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest
from django.core.management.color import no_style
from django.db import connection

from memories.models import AgentFile, AgentFileEntry, Memory, Project
from sessions_app import receipts
from sessions_app.models import Injected, LogEntry, LogKind, Session, Status, Trigger
from sessions_app.prompts.digest import digest_of
from sessions_app.runner.launch import inject
from sessions_app.runner.prompt import compose_for, knowledge_for, selection_for
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db
AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
TEMPLATES = ("Role", "Constraints", "Output Format")
"""The sections whose text is mostly that of the templates, which no database changes."""

SHA256 = "1ca7c9e510ee3c432abd37fe428d7c1d9e2a0f6a41bc39dd196599cd114e25ce"


def number_on_from_there(*models):
    """PostgreSQL does not see the numbers that a test chose, and would give them again."""
    with connection.cursor() as cursor:
        for sql in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(sql)


@pytest.fixture
def session():
    project = ProjectFactory(pk=5, slug="shop", name="Tea shop", description="Sells tea.", path="/srv/shop")
    facts = (
        (41, "Uses cookies for the login", 0.9, ["login"]),
        (42, "Ärger mit Umlauten — 茶", 0.9, ["src/core/**"]),
        (43, "Builds take 90 s", 0.6, []),
        (44, "Equal one", 0.6, []),
    )
    for pk, text, confidence, tags in facts:
        MemoryFactory(
            pk=pk,
            taxonomy="project",
            project=project,
            service=None,
            category="pattern",
            observation=text,
            confidence=confidence,
            tags=tags,
            created_at=AT,
        )
    number_on_from_there(Memory, Project)
    old = SessionFactory(
        pk=70, agent=None, status=Status.FAILED, exit_code=1, status_reason="It reported an error.", project=project
    )
    entries = (
        (1, LogKind.TOOL_USE, 'Edit: {"file_path": "src/core/a.ts"}', None, None),
        (2, LogKind.TOOL_USE, 'Bash: {"command": "npm test"}', None, None),
        (3, LogKind.TOOL_RESULT, "Error: 3 failed", 2, True),
    )
    for seq, kind, text, call, wrong in entries:
        LogEntry.objects.create(session=old, seq=seq, at=AT, kind=kind, text=text, offset=0, call=call, is_error=wrong)
    return SessionFactory(
        pk=71,
        agent=AgentFactory(slug="mender", name="Mender", structured_response=True),
        project=project,
        parent=old,
        follows_as="retry",
        status=Status.QUEUED,
        task="Fix the login.",
        brief={"title": "Login fails", "write_scope": ["src/core/pay/*.ts"], "note": "Mind the cookie."},
    )


def composed(session):
    session = Session.objects.select_related("agent", "project", "parent").get(pk=session.pk)
    return compose_for(session, selection_for(session, at=AT), handoff_file="/run/handoff.json", at=AT)


def test_the_same_inputs_give_the_same_bytes_on_both_databases(session):
    first = composed(session)
    assert first == composed(session)
    of_rows = [section for section in first.sections if section[0] not in TEMPLATES]
    assert hashlib.sha256(repr(of_rows).encode()).hexdigest() == SHA256


def test_the_prompt_names_the_projects_memories_and_what_was_tried(session):
    text = composed(session).text
    lines = [line for line in text.splitlines() if line.endswith("]") and line.startswith("- [pattern]")]
    assert lines == [
        "- [pattern] Uses cookies for the login [m41]",
        "- [pattern] Ärger mit Umlauten — 茶 [m42]",
        "- [pattern] Builds take 90 s [m43]",
        "- [pattern] Equal one [m44]",
    ]
    assert '- Bash: {"command": "npm test"} (failed)' in text
    assert "Files it changed:\n\n- src/core/a.ts" in text
    assert "The operator's words:\n\nMind the cookie." in text


def test_a_session_that_follows_none_has_no_digest(session):
    assert digest_of(session.parent) is None


def test_the_receipt_has_the_projects_part_and_counts_its_memories_as_injected(session):
    MemoryFactory(observation="Restarts take 60 s", category="timing")
    selected = inject(session, at=AT)
    receipt = session.receipt
    assert [entry["id"] for entry in receipt.of("project")] == [41, 42, 43, 44]
    assert [entry["observation"] for entry in receipt.of("ops")] == ["Restarts take 60 s"]
    assert receipt.sha256 == hashlib.sha256(receipt.text.encode()).hexdigest()
    assert "Uses cookies" not in receipt.text
    assert receipt.project["text"] == selected.project.text
    assert receipt.project["counts"]["included"] == 4
    assert set(Injected.objects.filter(session=session).values_list("memory_id", flat=True)) >= {41, 42, 43, 44}
    assert Memory.objects.get(pk=41).told_count == 1
    receipts.keep(session, selected.ops, selected.project, at=AT)
    assert Memory.objects.get(pk=41).told_count == 1


def test_the_agent_is_told_its_file_in_a_section_of_its_own_and_the_receipt_keeps_it(session):
    file = AgentFile.objects.create(project=session.project, agent="mender", path="mender_agent.md")
    memory = MemoryFactory(
        taxonomy="agent",
        category="mistake",
        project=session.project,
        agent="mender",
        observation="Cookies expire early",
    )
    section = "Common Mistakes to Avoid"
    AgentFileEntry.objects.create(file=file, memory=memory, section=section, text=memory.observation)
    selected = inject(session, at=AT)
    text = compose_for(session, selected.project, selected.agent, handoff_file="/run/handoff.json", at=AT).text
    assert "## Agent Memory\n\n### Common Mistakes to Avoid\n- Cookies expire early\n\n" in text
    assert text.index("## Memories") < text.index("## Agent Memory") < text.index("## Constraints")
    assert "# Add To Memory:\nType: <type>" in text
    receipt = session.receipt
    assert [entry["id"] for entry in receipt.of("agent")] == [memory.pk]
    assert receipt.agent_file["file"] == file.pk and receipt.agent_file["items"] == 1
    assert Memory.objects.get(pk=memory.pk).told_count == 1


def test_an_agent_without_a_file_has_no_such_section(session):
    selected = inject(session, at=AT)
    text = compose_for(session, selected.project, selected.agent, handoff_file="/run/handoff.json", at=AT).text
    assert "## Agent Memory" not in text
    assert session.receipt.agent_file == {}


def known(text="The login cookie lives for an hour", **fields):
    """A memory of knowledge among others, which make its words rare."""
    others = (f"{letter}{other} likes tea in winter" for letter in "bcdfghjk" for other in "aeiou")
    Memory.objects.bulk_create(
        Memory(observation=other, taxonomy="knowledge", category="preferences", project=fields.get("project"))
        for other in others
    )
    return MemoryFactory(taxonomy="knowledge", category="operations", service=None, observation=text, **fields)


def test_knowledge_stands_in_a_section_of_its_own_and_on_the_same_receipt(session):
    memory = known(project=session.project)
    selected = inject(session, at=AT)
    composed = compose_for(
        session, selected.project, selected.agent, selected.knowledge, handoff_file="/run/handoff.json", at=AT
    )
    assert f"\n\n{selected.knowledge.text}\n\n" in composed.text
    assert composed.text.index("## Memories") < composed.text.index("## Knowledge (1 memory, ~")
    assert composed.text.index("## Knowledge") < composed.text.index("## Constraints")
    assert f"- [operations] The login cookie lives for an hour [m{memory.pk}]" in composed.text
    receipt = session.receipt
    assert [entry["id"] for entry in receipt.of("knowledge")] == [memory.pk]
    assert receipt.knowledge["text"] == selected.knowledge.text
    assert receipt.knowledge["sha256"] == hashlib.sha256(selected.knowledge.text.encode()).hexdigest()
    assert receipt.knowledge["query"] == "Login fails\nFix the login."
    assert Injected.objects.filter(session=session, memory_id=memory.pk).exists()
    assert Memory.objects.get(pk=memory.pk).told_count == 1
    again = inject(session, at=AT)
    assert again.knowledge.text == selected.knowledge.text
    assert Memory.objects.get(pk=memory.pk).told_count == 1


@pytest.mark.parametrize(
    ("fields", "profile"),
    [
        ({"trigger": Trigger.SCHEDULED, "task": "", "brief": {}}, "lean"),
        ({"trigger": Trigger.SCHEDULED}, "balanced"),
        ({"trigger": Trigger.MANUAL}, "balanced"),
        ({"trigger": Trigger.ALERT}, "deep"),
        ({"trigger": Trigger.ESCALATION, "task": "", "brief": {}}, "deep"),
    ],
)
def test_how_a_session_began_says_how_much_is_looked_for(session, fields, profile):
    known()
    for name, value in fields.items():
        setattr(session, name, value)
    assert knowledge_for(session, at=AT).profile == profile


def test_without_a_task_the_words_of_the_agent_and_its_project_are_asked_for(session):
    memory = known("The login cookie lives for an hour")
    session.task, session.brief, session.trigger = "", {}, Trigger.SCHEDULED
    session.agent.prompt_template = "{{ base }}\nYou mind the login cookie. {% if tier == 1 %}Look only.{% endif %}"
    found = knowledge_for(session, at=AT)
    assert found.query == "Mender\nYou mind the login cookie.  Look only.\nTea shop"
    assert [entry["id"] for entry in found.included] == [memory.pk]
    session.agent.prompt_template += " and much else of no weight" * 200
    found = knowledge_for(session, at=AT)
    assert len(found.query) < 450
    assert found.query.endswith("Tea shop")


def test_without_knowledge_there_is_no_section_and_the_receipt_says_why(session):
    selected = inject(session, at=AT)
    assert "## Knowledge" not in composed(session).text
    assert session.receipt.knowledge["why"] == "nothing is known yet"
    assert selected.knowledge.text == ""


def test_an_escalation_is_asked_for_why_it_was_handed_over(session):
    session.parent.escalation = {"needed": True, "reason": "The cookie store is full.", "context": "much"}
    session.follows_as, session.trigger = "", Trigger.ESCALATION
    assert knowledge_for(session, at=AT).query == "Login fails\nFix the login.\nThe cookie store is full."
