"""Workers that are really killed on the way from observations to MEMORY.md: nothing is lost, nothing is there twice."""

from __future__ import annotations

import pytest

from memories.curate.files import promote_due
from memories.curate.reflection.runs import reflect
from memories.curate.triage import triage
from memories.models import MemoryFile, ModelCall, Proposal, ProposalDecision, ProposalState, Reflection
from tests.sessions_app.curating.conftest import CLEAN, LOCK, OUTSIDE
from tests.support.processes import killed
from tests.support.thorough import one_of

pytestmark = pytest.mark.django_db(transaction=True)

WORK = """
import django
django.setup()
from memories.curate.files import promote_due
from memories.curate.reflection.runs import reflect
from memories.curate.triage import triage
reflect(None)
triage()
promote_due()
"""
RUNS, TRIAGE, PROMOTION = "memories.curate.reflection.runs", "memories.curate.triage", "memories.curate.promotion"


def environment(settings):
    return {
        "CLAUDEOPS_MODEL_RECORDINGS": settings.CLAUDEOPS_MODEL_RECORDINGS,
        "CLAUDEOPS_MODEL_REFLECTOR": settings.CLAUDEOPS_MODEL_REFLECTOR,
        "CLAUDEOPS_MODEL_TRIAGE": settings.CLAUDEOPS_MODEL_TRIAGE,
    }


def let_claims_end() -> None:
    """Claims of a dead worker are void after some minutes."""
    Reflection.objects.update(claimed_until=None)
    Proposal.objects.update(claimed_until=None)


@pytest.mark.parametrize(
    ("event", "module", "function", "nth"),
    one_of(
        [
            ("return", RUNS, "_claim", 1),
            ("return", "memories.llm.calls", "ask", 1),
            ("return", RUNS, "_store", 1),
            ("return", RUNS, "make", 1),
            ("return", RUNS, "_carry_out", 1),
            ("return", TRIAGE, "_by_rules", 1),
            ("return", "memories.llm.batch", "_claim", 1),
            ("return", "memories.llm.calls", "ask", 2),
            ("return", TRIAGE, "triage", 1),
            ("call", PROMOTION, "promote_due", 1),
            ("return", "memories.curate.proposals", "mark_promoted", 1),
            ("return", PROMOTION, "promote_due", 1),
        ]
    ),
)
def test_killed_there_and_run_again_is_one_run(world, settings, event, module, function, nth):
    world.observe()
    world.answer()
    killed(WORK, event, module, function, nth=nth, more=environment(settings))
    let_claims_end()
    for _ in range(2):  # what another worker left may take a second run
        reflect(None)
        triage()
        promote_due()

    assert Reflection.objects.count() == 1
    states = dict(Proposal.objects.values_list("text", "state"))
    assert states == {
        LOCK: ProposalState.PROMOTED,
        CLEAN: ProposalState.PROMOTED,
        OUTSIDE: ProposalState.WAITING,
    }
    assert ProposalDecision.objects.filter(verdict="promote", undone_at=None).count() == 2
    assert world.git("rev-list", "--count", "HEAD").strip() == "2"
    entries = [line for line in world.file.read_text().splitlines() if line.startswith("- ")]
    assert [line.partition(") ")[2] for line in entries] == [LOCK, CLEAN]
    assert world.git("status", "--porcelain") == ""
    assert MemoryFile.objects.get().pending == {}
    answered = ModelCall.objects.filter(outcome="answered")
    assert answered.filter(role="reflector").count() <= 2
    assert answered.filter(role="triage").count() <= 3  # what comes from outside is asked about apart
