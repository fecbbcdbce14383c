"""`/projects/{slug}/agents/{agent}`: the memory file of one agent, its conflicts, and what is done there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone

from claudeops.features.agent_files.effect import came_back, effect_of
from claudeops.features.agent_files.figures import agents_of, captures_of, injections_of
from claudeops.features.agent_files.lines import limits_of, open_clashes, parts_of
from claudeops.lib.answers import action, actor, by_htmx, in_words, moved, page
from claudeops.lib.detail_page import Tab, tabs_of
from claudeops.lib.domain_error import DomainError
from claudeops.lib.secrets import mask
from memories import store
from memories.capture.statement import HUMAN, Provenance
from memories.files import conflicts, tidy
from memories.files.conflicts import MASKED
from memories.files.limits import Limits
from memories.files.sections import sections_for
from memories.files.suggest import Join, Line, joins
from memories.files.sync import Synced, sync_file
from memories.files.told import told
from memories.files.trouble import trouble_of
from memories.files.typed import save_text, take_back
from memories.lifecycle import verbs
from memories.models import AgentFile, AgentFileConflict, AgentFileEntry, Memory, MemoryChange, Project, Verdict
from memories.taxonomy import AGENT


class LineForm(forms.Form):
    """A line of a file: its text and its type, which decides the section. `change` is the latest one the person saw."""

    text = forms.CharField(
        label="Line", max_length=1_000, widget=forms.Textarea(attrs={"rows": 2, "placeholder": "One fact, in a line."})
    )
    category = forms.ChoiceField(label="Type")
    change = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(
        self, file: AgentFile, data: Any = None, initial: dict[str, Any] | None = None, name: str = "line"
    ) -> None:
        super().__init__(data, auto_id=f"{name}-%s", initial=initial)
        self.most = Limits.of(file.limits, file.project.files_limits).line - 2
        sections = sections_for(file.agent, file.project.files_sections)
        category: Any = self.fields["category"]
        category.choices = [(name, f"{name}: {sections.section_of(name)}") for name in AGENT.categories]
        for field in ("text", "category"):
            self.fields[field].widget.attrs["class"] = "field"
        self.fields["text"].help_text = f"At most {self.most} characters."

    def clean_text(self) -> str:
        text = " ".join(self.cleaned_data["text"].split())
        if len(text) > self.most:
            raise forms.ValidationError(f"{len(text)} characters; a line has at most {self.most}.")
        if MASKED in text or mask(text) != text:
            raise forms.ValidationError("A credential does not belong into a memory. Change such a line in the file.")
        return text


class TextForm(forms.Form):
    """The whole text of a file, credentials masked; `sha256` is that of the bytes that the person read."""

    text = forms.CharField(
        label="The file’s text",
        strip=False,
        required=False,
        widget=forms.Textarea(attrs={"rows": 30, "spellcheck": "false", "class": "field mono"}),
    )
    sha256 = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)


SEES = ("memories.view_project", "memories.view_memory")
CHANGE = "memories.change_memory"
RECENT = 50
"""Rows of the tab Changes."""
LEFT = 100
"""Entries that left the file: so many are read, compared and shown."""
ANSWERED = {
    "file": "The file’s text is kept.",
    "other": "The other text is taken.",
    "both": "Both texts are kept.",
}


def _file(slug: str, agent: str) -> AgentFile:
    return get_object_or_404(AgentFile.objects.select_related("project"), project__slug=slug, agent=agent)


def _address(file: AgentFile) -> str:
    return reverse("agent_file", args=[file.project.slug, file.agent])


@page(SEES)
def agent_file(request: HttpRequest, slug: str, agent: str) -> HttpResponse:
    """Show a file as it was at its last sync. Nothing is read from the disk.

    `?edit=` names the line to edit, and `?tab=text&edit=text` edits the whole text.
    """
    file = _file(slug, agent)
    target = request.GET.get("edit", "")
    line = _line(file, int(target)) if target.isascii() and target.isdecimal() and len(target) < 18 else None
    form = None
    if line is not None and request.user.has_perm(CHANGE):
        latest = MemoryChange.objects.filter(memory=line).order_by("-pk").values_list("pk", flat=True).first()
        form = LineForm(file, initial={"text": line.observation, "category": line.category, "change": latest or 0})
    whole = None
    if target == "text" and request.GET.get("tab") == "text" and request.user.has_perm(CHANGE):
        whole = TextForm(auto_id="whole-%s", initial={"text": file.text, "sha256": file.sha256})
    return _page(request, file, line=line, form=form, whole=whole)


def _line(file: AgentFile, pk: int) -> Memory | None:
    """Return the memory of a line of the file, or of one that left it."""
    row = file.entries.filter(memory=pk).select_related("memory").first()
    return row.memory if row else None


def _page(
    request: HttpRequest,
    file: AgentFile,
    *,
    line: Memory | None = None,
    form: LineForm | None = None,
    added: LineForm | None = None,
    whole: TextForm | None = None,
    status: int = 200,
) -> HttpResponse:
    at = timezone.now()
    rows, former_rows = _entries(file)
    tabs = tabs_of(
        [Tab("read", "Read"), Tab("text", "Text"), Tab("changes", "Changes")],
        "text" if whole else request.GET.get("tab", ""),
        "read",
    )
    is_told, agents = told(file), agents_of(file)
    context: dict[str, Any] = {
        "file": file,
        "advice": trouble_of(file).advice,
        "tabs": tabs,
        "told": is_told,
        "clashes": open_clashes(file),
        "limits": limits_of(file),
        "left": former_rows,
        "left_count": file.entries.exclude(left_because="").count(),
        "its_agent": agents[0] if agents else None,
        "captured": captures_of(file, at),
        "injections": injections_of(file, agents, at),
        "joins": _joins([*rows, *former_rows]),
        "came_back": came_back([*rows, *former_rows]),
        "edited": line,
        "form": form,
        "whole": whole,
        "add_form": added or LineForm(file, initial={"category": "learning"}, name="add"),
    }
    if request.user.has_perm("sessions_app.view_session"):
        context["effect"] = effect_of(file, agents, at)
    if tabs.shown == "read":
        context["parts"] = parts_of(file, rows, is_told, at)
    elif tabs.shown == "changes":
        memories = [row.memory_id for row in (*rows, *former_rows) if row.memory_id]
        changes = MemoryChange.objects.filter(memory__in=memories).select_related("memory").order_by("-pk")
        context["changes"] = changes[:RECENT]
    return render(request, "agent_files/file.html", context, status=status)


def _entries(file: AgentFile) -> tuple[list[AgentFileEntry], list[AgentFileEntry]]:
    """Return the entries that stand in the file, in its order, and the latest LEFT of those that left it."""
    rows = file.entries.select_related("memory", "file")
    standing = rows.filter(left_because="").order_by("position", "pk")
    return list(standing), list(rows.exclude(left_because="").order_by("-pk")[:LEFT])


def _joins(rows: Sequence[AgentFileEntry]) -> list[Join]:
    """Return which of the entries could be joined. `tidy.optimize` compares all that ever left as well."""
    candidates = [row for row in rows if row.memory and row.memory.active and row.memory.verdict == Verdict.ALLOW]
    return joins([line for line in map(Line.of, candidates) if line is not None])


def file_action(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Make a view of a file an action; what a verb refuses is said on the page of the file."""

    @action((*SEES, CHANGE))
    @wraps(view)
    def run(request: HttpRequest, slug: str, agent: str, **given: Any) -> HttpResponse:
        file = _file(slug, agent)
        try:
            return view(request, file, **given)
        except DomainError as error:
            return _back(request, file, in_words(error), level=messages.ERROR)

    return run


@file_action
def answer(request: HttpRequest, file: AgentFile, pk: int) -> HttpResponse:
    """Answer a conflict, then bring the file in step."""
    row = get_object_or_404(AgentFileConflict, pk=pk, file=file)
    choice = request.POST.get("answer", "")
    conflict = conflicts.answer(row, choice, by=actor(request))
    undo = (
        reverse("agent-file-undo", args=[file.project.slug, file.agent, pk])
        if conflicts.can_be_undone(conflict)
        else ""
    )
    return _synced(request, file, ANSWERED[choice], undo=undo)


@file_action
def undo(request: HttpRequest, file: AgentFile, pk: int) -> HttpResponse:
    """Take back the answer to a conflict, so that it is open again."""
    row = get_object_or_404(AgentFileConflict, pk=pk, file=file)
    take_back(row, by=actor(request))
    return _synced(request, file, "The conflict is open again.")


def _synced(
    request: HttpRequest, file: AgentFile, message: str, *, undo: str = "", of: int | None = None
) -> HttpResponse:
    """Sync the file after a change and say how it went; `of` is the memory whose line should be in the file then."""
    outcome = sync_file(file.project, file.agent, by=actor(request))
    out = file.entries.filter(memory=of).exclude(left_because="").first() if of else None
    problem = f"It is stored, but not in the file: {out.left_because}." if out else _problem(file, outcome)
    level = messages.WARNING if problem else messages.SUCCESS
    return _back(request, file, f"{message} {problem}".strip(), level=level, undo=undo)


def _back(
    request: HttpRequest, file: AgentFile, message: str, *, level: int = messages.SUCCESS, undo: str = ""
) -> HttpResponse:
    response = moved(request, _address(file), message, level=level, undo=undo)
    if by_htmx(request):  # an undo of a message: the whole page is another one
        return HttpResponse(headers={"HX-Redirect": _address(file)})
    return response


def _problem(file: AgentFile, outcome: Synced) -> str:
    if not file.enabled:
        return "The file is off: it is not written until it is on again."
    return outcome.problem


@file_action
def switch(request: HttpRequest, file: AgentFile) -> HttpResponse:
    """Switch the file on or off, with the reason."""
    on = request.POST.get("on") == "1"
    reason = " ".join(request.POST.get("reason", "").split())[:200]
    changed = tidy.switch(file.project, file.agent, on, by=actor(request), reason=reason)
    file.refresh_from_db()
    if not changed:
        return _back(request, file, f"The file is {'on' if on else 'off'} already.")
    if not on:
        return _back(request, file, "The file is off: it is neither read nor written, and its agent is not told of it.")
    return _synced(request, file, "The file is on.")


@file_action
def add(request: HttpRequest, file: AgentFile) -> HttpResponse:
    """Add a line as the word of the person who typed it."""
    form = LineForm(file, request.POST, name="add")
    if not form.is_valid():
        return _page(request, file, added=form, status=422)
    statement = store.Statement(form.cleaned_data["category"], form.cleaned_data["text"], taxonomy=AGENT.slug)
    provenance = Provenance(HUMAN, actor(request), project_id=file.project_id, agent=file.agent, channel=HUMAN)
    try:
        result = store.remember(statement, provenance)
    except DomainError as error:
        form.add_error("text", in_words(error))
        return _page(request, file, added=form, status=422)
    return _synced(request, file, "The line is added.", of=result.memory_id)


@file_action
def edit(request: HttpRequest, file: AgentFile, pk: int) -> HttpResponse:
    """Change the text or the type of a line, unless somebody changed it since it was read."""
    line = _line(file, pk)
    if line is None:
        return _back(request, file, "This line is not in the file any more.", level=messages.ERROR)
    form = LineForm(file, request.POST)
    if MASKED in line.observation:
        form.add_error("text", "The line holds a credential that is stored nowhere else. Change it in the file.")
    if not form.is_valid():
        return _page(request, file, line=line, form=form, status=422)
    try:
        change = verbs.edit(
            pk,
            by=actor(request),
            observation=form.cleaned_data["text"],
            category=form.cleaned_data["category"],
            expected_change=form.cleaned_data["change"],
            provenance=Provenance.typed_by(actor(request)),
            reason="Changed on the page of its file.",
        )
    except DomainError as error:
        form.add_error("text", in_words(error))
        return _page(request, file, line=line, form=form, status=422)
    if change is None:
        return _back(request, file, "The line has nothing to change.")
    return _synced(request, file, "The line is changed.", undo=reverse("memory-undo", args=[pk, change.pk]), of=pk)


@file_action
def text(request: HttpRequest, file: AgentFile) -> HttpResponse:
    """Save the whole text of the file, unless it was changed since it was read; what was typed stays in the field."""
    form = TextForm(request.POST, auto_id="whole-%s")
    if not file.enabled:
        form.add_error("text", "The file is off: it is not written until it is on again.")
    if not form.is_valid():
        return _page(request, file, whole=form, status=422)
    try:
        outcome = save_text(file, form.cleaned_data["text"], sha256=form.cleaned_data["sha256"], by=actor(request))
    except DomainError as error:
        form.add_error("text", in_words(error))
        return _page(request, file, whole=form, status=422)
    message = (
        f"The file is saved. {outcome.conflicts} lines are in conflict." if outcome.conflicts else "The file is saved."
    )
    level = messages.WARNING if outcome.problem else messages.SUCCESS
    return _back(request, file, f"{message} {outcome.problem}".strip(), level=level)


VERBS: Mapping[str, tuple[Callable[..., MemoryChange | None], str, str]] = {
    "remove": (verbs.deactivate, "Removed on the page of its file.", "The line is removed."),
    "approve": (verbs.approve, "", "The line is approved; its agent is told it."),
}
"""What a line can do, the reason that is noted, and what is said then."""


@file_action
def act(request: HttpRequest, file: AgentFile, pk: int, verb: str) -> HttpResponse:
    """Remove a line, or approve one that is held."""
    if verb not in VERBS or _line(file, pk) is None:
        raise Http404("There is no such line.")
    run, reason, message = VERBS[verb]
    if verb == "approve":  # only what the person read
        run = partial(verbs.approve, expected_text=request.POST.get("text", ""))
    change = run(pk, by=actor(request), reason=reason)
    undo = reverse("memory-undo", args=[pk, change.pk]) if change else ""
    return _synced(request, file, message, undo=undo)


@file_action
def join(request: HttpRequest, file: AgentFile, pk: int) -> HttpResponse:
    """Carry out the suggestion to join lines into that of memory `pk`, if it is still what the person read."""
    others = request.POST.getlist("other")
    rows, former_rows = _entries(file)
    wanted = next((one for one in _joins([*rows, *former_rows]) if one.target.memory_id == pk), None)
    if wanted is None or [str(line.memory_id) for line in wanted.others] != others:
        return _back(request, file, "This suggestion has changed. Read the page again.", level=messages.ERROR)
    change = tidy.join(wanted, by=actor(request))
    return _synced(
        request, file, "The lines are joined.", undo=reverse("memories-undo", args=[change.pk]) if change else ""
    )


@action((*SEES, "memories.add_memory"))
def accept(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Make a memory of the project of what several agents know, by the best of their lines."""
    project = get_object_or_404(Project, slug=slug)
    back = f"{reverse('project', args=[slug])}?tab=files&shared=1"
    wanted = next((one for one in tidy.shared_of(project) if one.best.memory_id == pk), None)
    if wanted is None or wanted.best.text != request.POST.get("text"):
        return moved(request, back, "This suggestion has changed. Read the page again.", level=messages.ERROR)
    try:
        memory_id = tidy.accept(wanted, project, by=actor(request))
    except DomainError as error:
        return moved(request, back, in_words(error), level=messages.ERROR)
    return moved(request, back, f"Memory {memory_id} of the project says it now. The agents’ lines stay.")
