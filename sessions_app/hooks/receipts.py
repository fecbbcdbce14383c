"""The receipts of what hooks' answers put into sessions of the CLI: stored once, and counted once by their memories."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from memories.injection.budget import tokens
from memories.injection.told import count_told
from sessions_app.hooks.answers import HookCall
from sessions_app.models import HookReceipt

INCLUDED = ("id", "category", "confidence", "observation")


def keep(call: HookCall, *, part: str, text: str, included: Iterable[Mapping[str, Any]], agent: str = "") -> None:
    """Store the receipt of an answer once: the CLI may send a hook twice."""
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


def count(receipts: QuerySet[HookReceipt]) -> None:
    """Let the memories of each of these receipts count it, once."""
    for receipt in receipts.filter(counted_at=None).order_by("pk"):
        with transaction.atomic():
            if HookReceipt.objects.filter(pk=receipt.pk, counted_at=None).update(counted_at=timezone.now()):
                count_told([entry["id"] for entry in receipt.included], (), at=receipt.at)
