"""Answer an action: a toast for htmx, which then asks for what changed; a redirect with a message for a plain form."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string


def done(request: HttpRequest, text: str, *, back: str, level: int = messages.SUCCESS, undo: str = "") -> HttpResponse:
    """Say `text` at this level of `django.contrib.messages`; `undo` is an address to POST to, or empty."""
    if not getattr(request, "htmx", False):
        messages.add_message(request, level, text, extra_tags=f"undo:{undo}" if undo else "")
        return HttpResponseRedirect(back)
    tag = messages.DEFAULT_TAGS[level]
    toast = render_to_string("_toast.html", {"text": text, "level": tag, "undo": undo, "oob": True}, request)
    # In a <template>: a parser drops a form after a <tr>. "wake" makes the pollers of the page ask at once.
    return HttpResponse(f"<template>{toast}</template>", headers={"HX-Trigger": "wake", "HX-Reswap": "none"})
