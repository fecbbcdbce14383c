"""How long each stage of an observed transcript takes for 1,000 facts, when so many memories are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db.models import Sum

from memories.models import Fact, GateDecision, Memory, Stage, StageName, Transcript
from memories.observe import pipeline
from memories.observe.turns import TurnKind
from memories.taxonomy import KNOWLEDGE
from sessions_app.transcripts.turns import repeats
from tests.benchmarks import facts
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import growth
from tests.memories.llm.conftest import Recordings
from tests.memories.observe.conftest import AT, HOST, World, answer, turns
from tests.support.factories import TranscriptFactory

pytestmark = pytest.mark.django_db(transaction=True)

A_PART = 100
"""Facts of one part. An answer has at most 200."""
OUTPUT = "\n".join(f"03:00:{n % 60:02} node-{n % 7} vault[{n}]: lease renewed in {n} ms" for n in range(200))


def test_the_stages_of_a_thousand_facts(
    report: Report, sizes: list[int], smoke: bool, tmp_path: Path, settings: Any
) -> None:
    settings.CLAUDEOPS_MODEL_RECORDINGS, settings.CLAUDEOPS_MODEL_OBSERVER = str(tmp_path), "recorded:any"
    number = A_PART if smoke else 1_000
    rows: dict[str, list[str]] = {name: [] for name in (*StageName.values, "all")}
    before: dict[str, float] = {}
    for size in sizes:
        facts.forget()
        facts.store(size, lambda number: {"updated_at": AT})
        Memory.objects.update(taxonomy=KNOWLEDGE.slug, category="operations", service=None)
        facts.settle()
        world = World(TranscriptFactory(host=HOST, last_at=AT), Recordings(tmp_path))
        for part in range(number // A_PART):
            # Half of them say again what is known, half are new.
            about = [size + n if n % 2 else n for n in range(part * A_PART, (part + 1) * A_PART)]
            said = [
                f"🟡 [gate=allow confidence=0.8 category=jc:operations] Service {n}: {facts.candidate(n, 'first').text}"
                for n in about
            ]
            asked = (TurnKind.USER, f"Please set up the services of part {part} of {size}, and note what you find out.")
            read = [(TurnKind.RESULT, f"{OUTPUT}\n{part} {turn}") for turn in range(20)]
            world.add(turns(asked, *read, (TurnKind.AGENT, "All are set up.")), answer(*said))
        with pipeline.draining(HOST):
            done = pipeline.drain(HOST, world.read, repeats, seconds=3_600)
        assert done.done == number // A_PART
        stored = Fact.objects.filter(segment__transcript=world.transcript).exclude(outcome="")
        assert stored.count() == number
        taken = dict(
            Stage.objects.filter(part__transcript=world.transcript)
            .order_by()
            .values_list("name")
            .annotate(Sum("duration_ms"))
        )
        GateDecision.objects.all().delete()
        Transcript.objects.all().delete()
        taken["all"] = sum(taken.values())
        for name, cells in rows.items():
            cells.append(f"{taken[name]:,} ms {growth(taken[name] / 1000, before.get(name))}".rstrip())
            before[name] = taken[name] / 1000
    columns = ("stage", *(f"{size:,} known" for size in sizes))
    note = f"{A_PART} facts a part, each compared with 20 results of tools of 10,000 characters; no vectors."
    report(f"STAGES of {number:,} facts", columns, [(name, *cells) for name, cells in rows.items()], note)
