"""A list as the dashboard's pages make theirs, and nothing else: for the keyboard, the selection and polling.

Every address of the house is here too, so that it stands in for `claudeops.urls`.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template import Context, Template
from django.template.context import RequestContext
from django.urls import path

from claudeops.urls import urlpatterns as house
from memories.models import Memory

ROW = """<tr id="row-{{ memory.pk }}" data-row="{{ memory.pk }}">
<td><input type="checkbox" name="id" value="{{ memory.pk }}" data-pick aria-label="Select memory {{ memory.pk }}"></td>
<td><a href="/list/{{ memory.pk }}" data-open>{{ memory.observation }}</a>
<details id="more-{{ memory.pk }}"><summary>More</summary>{{ memory.category }}</details></td>
<td><button type="button" data-edit hx-get="/list/{{ memory.pk }}/edit"
hx-target="closest tr" hx-swap="outerHTML">Edit</button></td>
</tr>"""
EDIT = """<tr id="row-{{ memory.pk }}" data-row="{{ memory.pk }}" data-editing>
<td colspan="3"><label for="text-{{ memory.pk }}">Text</label>
<input id="text-{{ memory.pk }}" name="observation" value="{{ memory.observation }}" autofocus>
<button type="button" data-cancel hx-get="/list/{{ memory.pk }}"
hx-target="closest tr" hx-swap="outerHTML">Cancel</button></td>
</tr>"""
LIST = (
    """<div id="list" hx-get="/list/rows" hx-trigger="every 500ms, wake from:body" hx-swap="outerHTML">
<form id="chosen" method="post" action="/list/chosen" data-select>{% csrf_token %}
<table class="table"><thead><tr>
<th><input type="checkbox" data-pick-page aria-label="Select the page"></th><th>Memory</th><th>Edit</th></tr></thead>
<tbody>{% for memory in memories %}"""
    + ROW
    + """{% endfor %}</tbody></table>
<div class="bulk-bar" data-bulk><span data-picked></span>
<button type="button" data-pick-all data-total="120">Select all 120 that match</button>
<button type="button" data-pick-none>Clear</button>
<input type="hidden" name="all_matching" value="1" disabled>
<button type="submit">Send</button></div>
</form></div>"""
)
PAGE = (
    """{% extends "base.html" %}{% block title %}List{% endblock %}{% block content %}<h1>List</h1>
<form method="get" data-auto-submit><label for="q">Search</label>
<input type="search" id="q" name="q" data-search></form>"""
    + LIST
    + "{% endblock %}"
)


def _memories() -> list[Memory]:
    return list(Memory.objects.order_by("pk")[:50])


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(Template(PAGE).render(RequestContext(request, {"memories": _memories()})))


def rows(request: HttpRequest) -> HttpResponse:
    return HttpResponse(Template(LIST).render(RequestContext(request, {"memories": _memories()})))


def row(request: HttpRequest, pk: int) -> HttpResponse:
    return HttpResponse(Template(ROW).render(Context({"memory": get_object_or_404(Memory, pk=pk)})))


def edit(request: HttpRequest, pk: int) -> HttpResponse:
    return HttpResponse(Template(EDIT).render(Context({"memory": get_object_or_404(Memory, pk=pk)})))


def chosen(request: HttpRequest) -> HttpResponse:
    """Says what was sent, in the message area, and offers to undo it."""
    said = f"{' '.join(request.POST.getlist('id'))} all={request.POST.get('all_matching', '')}"
    toast = "{% include '_toast.html' with text=said level='success' undo='/list/undo' %}"
    toast = "{% extends 'base.html' %}{% block content %}" + toast + "{% endblock %}"
    return HttpResponse(Template(toast).render(RequestContext(request, {"said": said})))


def undo(request: HttpRequest) -> HttpResponse:
    toast = "{% include '_toast.html' with text='Undone.' level='success' oob=True %}"
    return HttpResponse(Template(toast).render(RequestContext(request, {})))


urlpatterns = [
    path("list", page),
    path("list/rows", rows),
    path("list/chosen", chosen),
    path("list/undo", undo),
    path("list/<int:pk>", row),
    path("list/<int:pk>/edit", edit),
    *house,
]
