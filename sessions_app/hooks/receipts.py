"""The receipts of what hooks' answers put into sessions of the CLI: stored once, and counted once by their memories."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from memories.injection.budget import tokens
from memories.injection.counting import count_injected
from memories.telemetry import record
from sessions_app.hooks.events import HookCall
from sessions_app.models import HookReceipt

INCLUDED = ("id", "category", "confidence", "observation")


def keep(call: HookCall, *, part: str, text: str, included: Iterable[Mapping[str, Any]], agent: str = "") -> None:
    """Store the receipt of an answer once, and its telemetry record: the CLI may send a hook twice."""
    receipt = HookReceipt(
        cli_session_id=call.payload.cli_session_id,
        event=call.event,
        part=part,
        session=call.session,
        project=call.project,
        agent=agent,
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        tokens=tokens(text),
        included=[{key: entry[key] for key in INCLUDED} for entry in included],
        at=call.at,
    )
    HookReceipt.objects.bulk_create([receipt], ignore_conflicts=True)
    once = hashlib.sha256(repr((receipt.cli_session_id, call.event, part, agent)).encode()).hexdigest()
    record(
        "memory.brief.completed",
        component="hooks",
        source="hook",
        key=f"brief-{once[:40]}",
        at=call.at,
        event=call.event,
        session=receipt.session_id,
        included=len(receipt.included),
        tokens=receipt.tokens,
    )


def count(receipts: QuerySet[HookReceipt]) -> None:
    """Let the memories of each of these receipts count it, once."""
    for receipt in receipts.filter(counted_at=None).order_by("pk"):
        with transaction.atomic():
            if HookReceipt.objects.filter(pk=receipt.pk, counted_at=None).update(counted_at=timezone.now()):
                count_injected([entry["id"] for entry in receipt.included], (), at=receipt.at)
