"""A memory's sessions, for its page in an app that does not know sessions."""

from __future__ import annotations

from typing import Any

from django import template

from sessions_app import receipts

register = template.Library()


@register.inclusion_tag("sessions/_of_memory.html")
def sessions_of_memory(pk: int) -> dict[str, Any]:
    said, more = receipts.said(pk, most=receipts.FEW)
    return {"pk": pk, "told": receipts.told(pk, most=receipts.FEW), "said": said, "said_more": more}
