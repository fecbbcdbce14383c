"""What a person had purged is refused at every door when it comes again, until a person allows it."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse
from django.utils import timezone

from claudeops.features.purge import run as purging
from claudeops.features.purge.choice import Choice
from memories.curate import proposals, told
from memories.errors import InvalidMemory
from memories.exchange.import_export import export_lines, import_lines
from memories.exchange.packs import apply_pack, make_pack, read_pack
from memories.files import capture
from memories.lifecycle import forgotten, verbs
from memories.models import AgentCapture, ForgottenText, GateDecision, Memory, Proposal, Source
from memories.store import Provenance, Statement, place, remember
from sessions_app.models import Purge
from tests.claudeops.purge.house import places_of
from tests.support.commands import document, run
from tests.support.factories import (
    MemoryFactory,
    MemoryFileFactory,
    ProjectFactory,
    SessionFactory,
)

pytestmark = pytest.mark.django_db

TEXT = "The spare key of the rack lies behind panel 7"
FORMS = (TEXT, TEXT.upper(), f"  {TEXT}. ", TEXT.replace(" ", "\n"), TEXT.replace("rack", "ra\u200bck"))


def purged() -> Purge:
    purge = Purge.objects.create(by="ops")
    forgotten.forget([TEXT], purge.pk, at=purge.created_at)
    return purge


@pytest.mark.django_db(transaction=True)
def test_a_purge_keeps_a_digest_and_a_session_that_runs_meanwhile_cannot_write_it_again():
    memory = MemoryFactory(observation=TEXT)
    purge = purging.begin(Choice(ids=(memory.pk,)), by="ops")
    assert remember(Statement("behavior", TEXT), Provenance(Source.RUN, "agent:a")).is_forgotten
    purging.carry_out(purge.pk)
    assert places_of(TEXT) == [] and ForgottenText.objects.filter(purge=purge).exists()


def test_no_agent_says_it_again_in_any_spelling_and_nothing_of_it_is_stored():
    purged()
    for text in FORMS:
        session = SessionFactory()
        done = remember(Statement("behavior", text, "rack"), Provenance(Source.RUN, "agent:a", session.pk))
        assert (done.outcome, done.is_forgotten, done.memory_id) == ("discarded", True, None), text
        assert "A person had this text purged (purge " in done.reason
        assert place(Statement("behavior", text), Provenance(Source.RUN, "agent:a")).outcome == "discarded"
    assert not Memory.objects.exists() and not GateDecision.objects.exists()
    assert ForgottenText.objects.get().refused == 2 * len(FORMS)
    # Other words are another statement.
    assert remember(Statement("behavior", f"{TEXT}0"), Provenance(Source.RUN, "agent:a")).outcome == "created"


def test_a_person_is_told_why_and_can_allow_it_again():
    purge = purged()
    typed = Provenance.typed_by("ops")
    other = MemoryFactory(observation="Something else", category="behavior")
    for door in (
        lambda: remember(Statement("behavior", TEXT), typed),
        lambda: verbs.edit(other.pk, by="ops", observation=TEXT, provenance=typed),
        lambda: verbs.edit(other.pk, by="agent:a", observation=TEXT),
        lambda: proposals.checked_text(TEXT, "operations"),
    ):
        with pytest.raises(InvalidMemory, match=f"purged \\(purge {purge.pk}\\)") as refusal:
            door()
        assert "--allow" in refusal.value.fix
    assert run("memory", "add", TEXT, "--category", "behavior")[0] == 1
    assert document("memory", "purge", "--allow", "Never said")[1]["error"]["code"] == "not_purged"
    assert document("memory", "purge", "--allow", TEXT.lower())[0] == 0
    assert ForgottenText.objects.get().allowed_by
    assert remember(Statement("behavior", TEXT), typed).outcome == "created"
    purged()  # once more, so it is refused once more
    with pytest.raises(InvalidMemory):
        remember(Statement("behavior", TEXT), typed)


def test_no_import_brings_it_back():
    project = ProjectFactory()
    memory = MemoryFactory(
        observation=TEXT, taxonomy="project", category="pattern", project=project, approved_at=timezone.now()
    )
    kept = MemoryFactory(observation="The rack has 42 units")
    lines = list(export_lines(Memory.objects.all()))
    pack = read_pack(json.dumps(make_pack(project)))
    purged()
    Memory.objects.filter(pk__in=(memory.pk, kept.pk)).delete()
    for trust in (False, True):
        done = import_lines(lines, by="ops", trust=trust)
        assert (done.purged, done.created) == (1, 0 if trust else 1)
    applied = apply_pack(pack, project, by="ops", approve=True)
    assert (applied.created, applied.purged) == (0, 1)
    assert not Memory.objects.filter(observation=TEXT).exists()


def test_neither_an_agents_file_nor_memory_md_tells_it():
    project = ProjectFactory()
    purged()
    said = Provenance(Source.RUN, "agent:a")
    answer = f"# Remember:\nType: guideline\nContent: {TEXT}\n#"
    rows = capture.capture(answer, project=project, agent="a", origin="session:1", provenance=said, at=timezone.now())
    assert [(row.outcome, row.text) for row in rows] == [("refused", forgotten.MARK)]
    MemoryFileFactory(project=project, text=f"# Memory\n\n## Operations\n- (2026-11-01) {TEXT}\n- The rack is grey\n")
    curated = told.select_curated(project)
    assert TEXT not in json.dumps(curated.record) and "The rack is grey" in curated.text
    assert "purged" in curated.left_out[0].reason
    assert not AgentCapture.objects.filter(text=TEXT).exists() and not Proposal.objects.exists()


def test_the_page_says_how_often_it_came_again_and_allows_it(client, operator):
    client.force_login(operator)
    purge = purged()
    remember(Statement("behavior", TEXT), Provenance(Source.RUN, "agent:a"))
    page = client.get(reverse("purge", args=[purge.pk])).content.decode()
    assert "1 text, known by its keyed digest" in page and "Refused 1 time" in page
    address = reverse("purge-allow", args=[purge.pk])
    client.post(address, {"text": "something else"})
    assert ForgottenText.objects.filter(allowed_at=None).count() == 1
    client.post(address, {"text": TEXT})
    assert not ForgottenText.objects.filter(allowed_at=None).exists()
