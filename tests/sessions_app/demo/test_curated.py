"""What the demo shows of curating, by its own streams and the recorded words of its models."""

from __future__ import annotations

import subprocess

import pytest

from memories.curate.files import promote_due
from memories.models import Change, MaintenanceRun, Memory, MemoryChange, Proposal, ProposalState, RunState, Tier
from sessions_app.demo.setup import ANSWERS, FORGOTTEN, LEARNED, set_up

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def recorded(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    settings.CLAUDEOPS_MODEL_RECORDINGS = str(ANSWERS)
    for role in ("OBSERVER", "REFLECTOR", "TRIAGE"):
        setattr(settings, f"CLAUDEOPS_MODEL_{role}", "recorded:demo")
    settings.CLAUDEOPS_MODEL_CLASSIFIER = ""


def test_it_has_a_memory_file_with_commits_and_a_proposal_in_the_inbox(settings, tmp_path):
    set_up()
    promote_due()  # as the schedule does each minute
    dump, wireguard, server = (text for _, text, _, _ in LEARNED)
    states = {row.proposed_text: (row.state, row.tier) for row in Proposal.objects.all()}
    assert states == {
        dump: (ProposalState.PROMOTED, Tier.RULES),
        wireguard: (ProposalState.PROMOTED, Tier.MODEL),
        server: (ProposalState.WAITING, Tier.PERSON),
    }
    folder = tmp_path / "memory"
    text = (folder / "MEMORY.md").read_text()
    assert dump in text and wireguard in text and server not in text
    log = subprocess.run(["git", "log", "--oneline"], cwd=folder, capture_output=True, text=True, check=True)
    assert len(log.stdout.splitlines()) == 2


def test_it_has_a_maintenance_run_that_can_be_undone(settings):
    set_up()
    run = MaintenanceRun.objects.get()
    assert run.state == RunState.DONE, run.problem
    texts = {text for _, _, _, text, _, _ in FORGOTTEN}
    changed = MemoryChange.objects.filter(memory__observation__in=texts).exclude(kind=Change.CREATED)
    assert set(changed.values_list("memory__observation", flat=True)) == texts
    forgotten = Memory.objects.get(observation__startswith="Rebuilds its thumbnails")
    assert not forgotten.active


def test_setting_up_twice_is_once(settings):
    set_up()
    before = (Memory.objects.count(), Proposal.objects.count(), MaintenanceRun.objects.count())
    set_up()
    assert before == (Memory.objects.count(), Proposal.objects.count(), MaintenanceRun.objects.count())
