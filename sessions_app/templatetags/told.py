"""The sessions of a memory, for the page of a memory: that app knows no session, its template asks here."""

from __future__ import annotations

from typing import Any

from django import template

from sessions_app import receipts

register = template.Library()


@register.inclusion_tag("sessions/_of_memory.html")
def sessions_of_memory(pk: int) -> dict[str, Any]:
    """The last sessions that were told memory `pk`, and those that said, confirmed or contradicted it."""
    said, more = receipts.said(pk, most=receipts.FEW)
    return {"pk": pk, "told": receipts.told(pk, most=receipts.FEW), "said": said, "said_more": more}
