"""`/memory-file`: MEMORY.md with who wrote each line, its conflicts, proposals, room and history; edit and revert.

The page is made of rows alone; git is run by what is done on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import Min, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from claudeops.lib.answers import action, actor, in_words, moved, page
from claudeops.lib.diff import line_diff
from claudeops.lib.domain_error import DomainError
from memories import inbox
from memories.curate import files
from memories.curate.document import MOST, SECTIONS, TITLE, WARN_AT, Document, Entry, parse
from memories.errors import Conflict
from memories.inbox.kinds import read_id, read_pick
from memories.inbox.proposals import in_file
from memories.models import MemoryFile, MemoryFileCommit, Project, ProposalEvidence

WEEK, MONTH = timedelta(days=7), timedelta(days=30)
MOST_LINES = 1_000
"""Lines that are shown with their authors; the text as a whole is one link away."""
MEASURED = timedelta(days=90)
LEAST_MEASURED = timedelta(days=14)
"""A file grows by what its commits of the last 90 days did; of fewer days than these nothing is said."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file, `number` counted from 1. `commit` is None for one that is not committed.

    `session` is the session that its knowledge is from, if one is known. `age` is week, month or empty (older).
    `merged` counts the proposals that were merged into the entry.
    """

    number: int
    text: str
    is_entry: bool
    commit: MemoryFileCommit | None = None
    session: int | None = None
    age: str = ""
    is_disputed: bool = False
    merged: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A section with its lines in the order of the file; `title` is empty for what stands before the first one."""

    name: str
    title: str
    lines: Sequence[Line]
    count: int


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of a file; `left` lines are not among them."""

    parts: Sequence[Part]
    left: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """The entries of a section, and their share of the largest section in percent."""

    title: str
    count: int
    percent: int


@dataclass(frozen=True, slots=True)
class Room:
    """Entries of those that fit. `level` is ok, near or over; `full` says when it is full, empty when not measured."""

    entries: int
    most: int
    level: str
    full: str
    shares: Sequence[Share]


def shown(
    document: Document,
    blame: Sequence[MemoryFileCommit | None],
    sessions: Mapping[int, int],
    disputed: frozenset[str],
    at: datetime,
) -> Shown:
    """Return the sections of a file as of `at` (aware).

    `blame` has the commit of each line, `sessions` the session by the id of a proposal, `disputed` the texts of the
    entries about which a conflict is open.
    """
    entries = {entry.line: entry for entry in document.entries}
    starts = [section.line for section in document.sections]
    bounds = [("", "", -1, starts[0] if starts else len(document.lines))]
    bounds += [(one.name, SECTIONS.get(one.name, one.name), one.line, one.end) for one in document.sections]
    parts, room = [], MOST_LINES
    for name, title, start, end in bounds:
        lines = [
            _line(number, document, entries.get(number), blame, sessions, disputed, at)
            for number in range(start + 1, end)
            if document.lines[number][0].strip("\ufeff \t\r") and document.lines[number][0].strip("\ufeff ") != TITLE
        ]
        count = sum(line.is_entry for line in lines)
        if name or lines:
            parts.append(Part(name, title, lines[:room], count))
        room = max(0, room - len(lines))
    total = sum(1 for text, _ in document.lines if text.strip())
    line_count = sum(len(part.lines) for part in parts)
    return Shown(parts, max(0, total - line_count) if room == 0 else 0)


def _line(
    number: int,
    document: Document,
    entry: Entry | None,
    blame: Sequence[MemoryFileCommit | None],
    sessions: Mapping[int, int],
    disputed: frozenset[str],
    at: datetime,
) -> Line:
    commit = blame[number] if number < len(blame) else None
    text = entry.text if entry else document.lines[number][0].strip()
    return Line(
        number + 1,
        text,
        entry is not None,
        commit,
        sessions.get(commit.proposal_id) if commit and commit.proposal_id else None,
        age_of(commit.at, at) if commit else "week",
        entry is not None and text in disputed,
        _merged(entry, commit),
    )


def _merged(entry: Entry | None, commit: MemoryFileCommit | None) -> int:
    proposal = commit.proposal if commit else None
    return proposal.merged_count if proposal and entry and entry.text == proposal.text else 0


def age_of(since: datetime, at: datetime) -> str:
    old = at - since
    return "week" if old < WEEK else "month" if old < MONTH else ""


def room_of(document: Document, *, net: int = 0, since: datetime | None = None, at: datetime | None = None) -> Room:
    """Return how full a file is. `net` lines came from `since` to `at` (both aware): from that it says when it is full.

    Nothing is said of less than 14 days, nor of a file that does not grow.
    """
    counts = Counter(entry.section for entry in document.entries)
    top = max(counts.values(), default=1)
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    shares = [Share(SECTIONS.get(name, name) or "Before the sections", n, round(100 * n / top)) for name, n in ordered]
    entries = len(document.entries)
    level = "over" if entries >= MOST else "near" if entries >= WARN_AT else "ok"
    full = _full_in(MOST - entries, net, at - since) if since and at else ""
    return Room(entries, MOST, level, full, shares)


def _full_in(remaining: int, net: int, measured: timedelta) -> str:
    if remaining <= 0:
        return "full"
    if net <= 0 or measured < LEAST_MEASURED:
        return ""
    days = remaining * (measured / timedelta(days=1)) / net
    if days > 730:
        return ""
    count, unit = (round(days / 30), "month") if days > 60 else (max(1, round(days / 7)), "week")
    return f"full in about {count} {unit}{'' if count == 1 else 's'}"


SEES = "memories.view_memoryfile"
CHANGES = "memories.change_memoryfile"
TABS = {"read": "Read", "text": "Text", "history": "History"}
RECENT = 5
"""Commits beside the file."""
PAGE = 50
"""Commits of a page of the history."""
WAITING = 20
MOST_FILES = 50
MOST_STEPS = 30
"""Steps back in the history of one entry."""
LONGEST = 200_000
"""Characters of the text that are shown."""


@page(SEES, "POST")
def memory_file(request: HttpRequest, slug: str = "") -> HttpResponse:
    """Show the file of a project (without a slug: the global one); POST makes it where there is none."""
    project = get_object_or_404(Project, slug=slug) if slug else None
    if request.method == "POST":
        _check_right(request)
        return _begin(request, project)
    file = MemoryFile.objects.select_related("project").filter(project=project).first()
    return _page(request, project, file)


@action((SEES, CHANGES))
def save(request: HttpRequest, pk: int) -> HttpResponse:
    """Commit a person's text as the whole file. When it changed since, show their text with the difference again."""
    file = _file(pk)
    text = request.POST.get("text", "").replace("\r\n", "\n")
    try:
        files.edit(file, text, by=actor(request), seen=request.POST.get("seen", ""))
    except Conflict as error:
        current = _file(pk)
        clash = {"said": in_words(error), "lines": line_diff(current.text.replace("\r\n", "\n"), text)}
        return _page(request, current.project, current, text=text, clash=clash, status=409)
    except DomainError as error:
        return _page(request, file.project, file, text=text, clash={"said": in_words(error)}, status=422)
    return moved(request, address_of(file.project), "Saved as a commit of yours.")


@action((SEES, CHANGES))
def revert(request: HttpRequest, pk: int) -> HttpResponse:
    """Undo one commit by another one."""
    file, sha = _file(pk), request.POST.get("sha", "")[:64]
    try:
        files.revert(file, sha, by=actor(request))
    except DomainError as error:
        return moved(request, address_of(file.project), in_words(error), level=messages.ERROR)
    return moved(request, address_of(file.project), f"{sha[:7]} is reverted, by a commit of yours.")


@action((SEES, "memories.change_proposal"))
def decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Decide about a proposal of the file, as the inbox does, and come back to the file."""
    file = _file(pk)
    kind_name, _, decision = request.POST.get("decision", "").partition(".")
    kind = inbox.KINDS.get(kind_name)
    decisions = {one.name: one for one in kind.decisions} if kind else {}
    try:
        of, pick = read_pick(request.POST.get("pick", ""))
    except ValueError:
        of = ""
    if kind is None or kind_name not in inbox.VIEWS["proposals"][1] or of != kind_name or decision not in decisions:
        message = "The decision could not be read. Nothing was changed."
        return moved(request, address_of(file.project), message, level=messages.ERROR)
    result = kind.decide(decision, [pick], by=actor(request), text=request.POST.get("observation"))
    message = " ".join([f"1 {decisions[decision].done}."] * result.count + list(result.refused))
    undo = reverse("inbox-undo", args=[kind_name, result.undo]) if result.undo else ""
    level = messages.WARNING if result.refused else messages.SUCCESS
    return moved(request, address_of(file.project), message, level=level, undo=undo)


@require_safe
@permission_required(SEES, raise_exception=True)
def download(request: HttpRequest, pk: int) -> HttpResponse:
    """Send the text as it was last read."""
    response = HttpResponse(_file(pk).text, content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="MEMORY.md"'
    return response


def address_of(project: Project | None) -> str:
    return reverse("memory-file-of", args=[project.slug]) if project else reverse("memory-file")


def _file(pk: int) -> MemoryFile:
    return get_object_or_404(MemoryFile.objects.select_related("project"), pk=pk)


def _check_right(request: HttpRequest) -> None:
    if not request.user.has_perm(CHANGES):
        raise PermissionDenied


def _begin(request: HttpRequest, project: Project | None) -> HttpResponse:
    try:
        files.init(project)
    except DomainError as error:
        return moved(request, address_of(project), in_words(error), level=messages.ERROR)
    return moved(request, address_of(project), "MEMORY.md is there, with its first commit.")


def _page(
    request: HttpRequest,
    project: Project | None,
    file: MemoryFile | None,
    *,
    text: str | None = None,
    clash: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    may_edit = request.user.has_perm(CHANGES) and (file is None or file.host == settings.CLAUDEOPS_HOST)
    tab = request.GET.get("tab", "")
    tab = "edit" if text is not None or (tab == "edit" and may_edit and file) else tab if tab in TABS else "read"
    others = MemoryFile.objects.exclude(project=None).select_related("project").defer("text", "blame", "pending")
    context: dict[str, Any] = {
        "project": project,
        "file": file,
        "its_page": address_of(project),
        "tabs": TABS,
        "tab": tab,
        "may_edit": may_edit,
        "may_decide": request.user.has_perm("memories.change_proposal"),
        "is_elsewhere": file is not None and file.host != settings.CLAUDEOPS_HOST,
        "global_file": MemoryFile.objects.filter(project=None).defer("text", "blame", "pending").first(),
        "others": list(others.order_by("project__slug")[:MOST_FILES]),
    }
    if file is not None:
        context |= _of_file(request, file, tab)
    if tab == "edit" and file is not None:
        shown_text = file.text.replace("\r\n", "\n") if text is None else text
        context |= {"text": shown_text, "clash": clash, "rows": min(40, max(12, shown_text.count("\n") + 2))}
    return render(request, "memories/memory_file.html", context, status=status)


def _of_file(request: HttpRequest, file: MemoryFile, tab: str) -> dict[str, Any]:
    at, document = timezone.now(), parse(file.text)
    waiting = in_file(file, WAITING)
    conflicts = [one for one in waiting if one.sides]
    commits = file.commits.order_by("-at", "-pk")
    grown = commits.filter(at__gte=at - MEASURED).aggregate(net=Sum("added") - Sum("removed"), since=Min("at"))
    context: dict[str, Any] = {
        "conflicts": conflicts,
        "waiting": [one for one in waiting if not one.sides],
        "room": room_of(document, net=grown["net"] or 0, since=grown["since"], at=at),
        "recent": list(commits[:RECENT]),
        "commit_count": commits[: inbox.CAP].count(),
    }
    if tab == "read":
        disputed = frozenset(str(one.proposal.conflict.get("theirs") or "") for one in conflicts)
        blame = _blame(file, document)
        sessions = _sessions(blame)
        view = shown(document, blame, sessions, disputed, at)
        context |= {"parts": view.parts, "left": view.left}
    elif tab == "text":
        context |= {"raw": file.text[:LONGEST], "cut": max(0, len(file.text) - LONGEST)}
    elif tab == "history":
        context |= _history(request, file, document)
    return context


def _blame(file: MemoryFile, document: Document) -> list[MemoryFileCommit | None]:
    """Return the commit of each line, of lines that are not committed None."""
    pks = [pk for pk in file.blame[: len(document.lines)] if isinstance(pk, int)]
    commits = file.commits.select_related("proposal").in_bulk(set(pks))
    return [commits.get(pk) for pk in file.blame[: len(document.lines)]]


def _sessions(blame: list[MemoryFileCommit | None]) -> dict[int, int]:
    """Return the first session that a proposal has evidence from, by the proposals of these commits."""
    proposals = {one.proposal_id for one in blame if one and one.proposal_id}
    rows = ProposalEvidence.objects.filter(proposal__in=proposals, session__isnull=False)
    by_proposal: dict[int, int] = {}
    for proposal, session in rows.order_by("-pk").values_list("proposal", "session"):
        by_proposal[proposal] = session
    return by_proposal


def _history(request: HttpRequest, file: MemoryFile, document: Document) -> dict[str, Any]:
    """Return a page of the commits, the latest first; with `?line=` those of the entry that stands there."""
    line = _number(request, "line")
    if line is not None:
        entry = next((one for one in document.entries if one.line == line - 1), None)
        if entry is None:
            raise Http404
        return {"commits": _history_of(file, line - 1), "entry": entry, "further": None}
    rows = file.commits.order_by("-at", "-pk")
    skip = min(_number(request, "skip") or 0, 100_000)
    commits = list(rows[skip : skip + PAGE + 1])
    return {
        "commits": commits[:PAGE],
        "entry": None,
        "further": skip + PAGE if len(commits) > PAGE else None,
        "skip": skip,
    }


def _history_of(file: MemoryFile, line: int) -> list[MemoryFileCommit]:
    """Return the commits of one line: that of its text, then those of the texts that it replaced."""
    pk = file.blame[line] if line < len(file.blame) else None
    commit = file.commits.select_related("proposal").filter(pk=pk).first() if pk else None
    commits: list[MemoryFileCommit] = []
    while commit is not None and len(commits) < MOST_STEPS and commit not in commits:
        commits.append(commit)
        before = commit.proposal.target if commit.proposal else ""
        rows = file.commits.select_related("proposal").filter(at__lte=commit.at, proposal__text=before)
        commit = rows.exclude(pk=commit.pk).order_by("-at", "-pk").first() if before else None
    return commits


def _number(request: HttpRequest, name: str) -> int | None:
    try:
        return read_id(request.GET.get(name, ""))
    except ValueError:
        return None
