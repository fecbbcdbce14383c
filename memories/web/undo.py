"""`/memories/undo`: undo together what one message offers, when several actions of a kind stand in it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve, reverse

from claudeops.lib.answers import action, actor, answer
from memories import desk
from memories.errors import MemoriesError
from memories.lifecycle import undo as lifecycle
from memories.lifecycle.restore import restore

MOST = 100
SAID = 3
"""Most refusals that are said one by one."""


@action(("memories.view_memory", "memories.change_memory"))
def undo_all(request: HttpRequest) -> HttpResponse:
    """Undo what each `undo` names, the address of a single undo, the latest first.

    Each is conditional as it is alone: what somebody changed since is left as it is, and the answer says so.
    """
    addresses = list(dict.fromkeys(request.POST.getlist("undo")))[-MOST:]
    count, refused = 0, []
    for address in reversed(addresses):
        try:
            count += _undo(address, request)
        except (MemoriesError, ValueError) as error:
            refused.append(str(error))
    said = [f"{count} {'change is' if count == 1 else 'changes are'} undone."] if count or not refused else []
    said += refused[:SAID]
    if len(refused) > SAID:
        said.append(f"{len(refused) - SAID} more are left as they are.")
    level = messages.SUCCESS if count and not refused else messages.WARNING
    return answer(request, " ".join(said), back=reverse("memories"), level=level)


def _undo(address: str, request: HttpRequest) -> bool:
    """Undo one action and return whether that changed anything. Raises MemoriesError, ValueError for no such undo."""
    by = actor(request)
    try:
        match = resolve(address.partition("?")[0])
    except Resolver404:
        raise ValueError(f"There is nothing to undo at {address[:80]}.") from None
    given: dict[str, Any] = match.kwargs
    if match.url_name == "memory-undo":
        return restore(given["pk"], given["change"], by=by, only_latest=True) is not None
    if match.url_name == "memories-undo":
        return lifecycle.undo(given["change"], by=by).back > 0
    if match.url_name == "desk-undo" and given["kind"] in desk.KINDS:
        kind = desk.KINDS[given["kind"]]
        if not request.user.has_perm(kind.permission):
            raise ValueError(f"You may not decide about {kind.label.lower()}.")
        kind.undo(given["token"], by=by)
        return True
    raise ValueError(f"There is nothing to undo at {address[:80]}.")
