"""`/library/skills/{id}`: a skill, as its file was last read."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from claudeops.lib.answers import page
from claudeops.lib.tracked_file.document import FRONT, Document
from memories.models import Skill


@page("memories.view_skill")
def skill(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Skill.objects.select_related("project"), pk=pk)
    document = Document.read(row.text)
    shown = (line for (line, _), kind in zip(document.lines, document.classes, strict=True) if kind != FRONT)
    return render(request, "library/skill.html", {"skill": row, "text": "\n".join(shown).strip()})
