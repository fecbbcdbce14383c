"""How long the inbox and the page of a memory file take when many proposals were made and many wait."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import Model
from django.test import Client

from memories import inbox
from memories.models import MemoryFile, Proposal, ProposalEvidence, ProposalKind, ProposalState, Tier, Trust
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms

pytestmark = pytest.mark.django_db(transaction=True)
EACH = 5
"""Proposals of a memory of BENCH_SIZES, with as many rows of evidence: 1 M rows at 100,000."""
WAITING = 50
"""One of so many waits, half of these for a person."""
START = datetime(2026, 1, 1, tzinfo=UTC)
ADDRESSES = ("/inbox", "/inbox?view=proposals", "/memory-file", "/memory-file?tab=history")


def test_the_inbox_and_the_memory_file_with_many_proposals(
    report: Report, sizes: list[int], smoke: bool, admin_client: Client
) -> None:
    number = sizes[-1] * EACH
    lines = "".join(f"- (2026-01-01) Entry {n} of the file says how long step {n} takes\n" for n in range(200))
    file = MemoryFile.objects.create(
        host=settings.CLAUDEOPS_HOST,
        repository="/nowhere",
        path="MEMORY.md",
        text=f"# Memory\n\n## Operations\n\n{lines}",
        entries=200,
    )
    _store(Proposal, (_proposal(file, n) for n in range(number)))
    first = Proposal.objects.order_by("pk").values_list("pk", flat=True)[0]
    _store(
        ProposalEvidence,
        (
            ProposalEvidence(proposal_id=first + n, memory_uuid=uuid.uuid4(), text=f"Fact {n}", trust=Trust.SESSION)
            for n in range(number)
        ),
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    rows: list[tuple[str, ...]] = []
    for address in ADDRESSES:
        series = Series()
        for _ in range(2 if smoke else 10):
            answer = series.time(admin_client.get, address)
            assert answer.status_code == 200
        rows.append((address, f"{len(answer.content):,}", ms(series.median), ms(series.p95)))
    counting = Series()
    for _ in range(2 if smoke else 10):
        assert counting.time(inbox.counts)["proposals"] > 0
    rows.append(("the inbox's counts", "", ms(counting.median), ms(counting.p95)))
    title = f"INBOX AND MEMORY FILE with {number:,} proposals and as many rows of evidence (aim: 100 ms a page)"
    report(title, ("address", "bytes", "ms", "p95"), rows)


def _proposal(file: MemoryFile, n: int) -> Proposal:
    waits = n % WAITING == 0
    tier = Tier.PERSON if n % (2 * WAITING) == 0 else Tier.MODEL
    return Proposal(
        key=f"bench-{n}",
        file=file,
        kind=ProposalKind.ADD,
        section="operations",
        text=f"Step {n} of the backup takes {n} seconds",
        proposed_text=f"Step {n} of the backup takes {n} seconds",
        state=ProposalState.WAITING if waits else ProposalState.PROMOTED,
        tier=tier,
        trust=Trust.SESSION,
        created_at=START + timedelta(seconds=n),
        decided_at=None if waits else START + timedelta(seconds=n),
    )


def _store(model: type[Model], rows: Iterator[Any], batch: int = 5000) -> None:
    while found := list(islice(rows, batch)):
        model._default_manager.bulk_create(found)
