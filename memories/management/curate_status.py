"""The verb `curate status`."""

from __future__ import annotations

from dataclasses import asdict

from claudeops.lib.cli import NextAction, Result, Verb, table
from claudeops.lib.humanize import exact
from memories.curate import status
from memories.curate.status import StageStatus

HEADERS = ["stage", "waiting", "since (UTC)", "last (UTC)", "what it did", "problem", "next"]


def run() -> Result:
    found = status.stages()
    rows = [
        (
            stage.name,
            f"{stage.what}: {stage.waiting.count:,}" if stage.waiting.count else "",
            exact(stage.waiting.since) if stage.waiting.since else "",
            exact(stage.last) if stage.last else "never",
            stage.did,
            stage.problem,
            stage.next,
        )
        for stage in found
    ]
    return Result([asdict(stage) for stage in found], table(HEADERS, rows), _next(found))


def _next(found: list[StageStatus]) -> list[NextAction]:
    """Say what helps where something waits or does not go on."""
    by_name = {stage.name: stage for stage in found}
    said = []
    if any(by_name[name].problem for name in ("reflect", "triage: model")):
        said.append(NextAction("manage.py model status", "see why a model does not answer"))
    if "are new" in by_name["reflect"].next:
        said.append(NextAction("manage.py curate reflect", "reflect now on what is new"))
    if by_name["triage: person"].waiting.count:
        said.append(NextAction("manage.py proposal list", "see the proposals that wait for you"))
    return said


VERB = Verb(
    "Each stage of the way from observation to MEMORY.md: its last run, what waits and since when, its problem.", run
)
