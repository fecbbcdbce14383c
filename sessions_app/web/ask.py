"""`/ask`: what an agent will be told for a task, line by line. Other questions have their own pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Max
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from claudeops.lib.answers import by_htmx, page
from claudeops.lib.secrets import mask
from memories.models import Memory, MemoryChange
from memories.taxonomy import TAXONOMIES
from sessions_app.models import InjectionReceipt, Session
from sessions_app.runner.parts import Answer, Line, answer_to
from sessions_app.web.forms import AskForm
from sessions_app.web.memory_sessions import MAY_SEE
from sessions_app.web.prompt_difference import differences, last_good, last_injected

SHOWN = 8
"""Lines of a part that are not folded, and of what is not told."""
VIEWS = ("reasons", "new", "sent")
REASONS = (
    (("over_budget", "no_room"), "No room", "status=active&sort=-confidence"),
    (("outside_window",), "Outside their window", ""),
    (("held",), "Held", "status=held"),
    (("unconfirmed",), "Unconfirmed", "status=unconfirmed"),
    (("below_threshold",), "Below the threshold", "status=active&confidence_max=0.3"),
    (("expired",), "Expired", ""),
    (("other_project",), "Other project", ""),
    (("inactive",), "Inactive", "status=inactive"),
)
"""The counts of a selection that say why memories are left out, and the list of memories that shows them."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many memories are left out for one reason; `query` lists them on the page of memories, empty for none."""

    label: str
    count: int
    query: str
    percent: int


@dataclass(frozen=True, slots=True)
class Untold:
    """A line that is not told, and what a person can do about it: `verb` with its address ("" for nothing).

    `seen` is the latest change of its memory; None where the address is a page.
    """

    line: Line
    verb: str = ""
    address: str = ""
    seen: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Whom a prompt is for, as a session that is not stored; `beside` is the earlier one, None without any."""

    session: Session
    beside: Session | None
    budget: int | None


@page(MAY_SEE)
def ask(request: HttpRequest) -> HttpResponse:
    """Show everything that a session will be told, what it will not, and what differs from an earlier one.

    What is not given is taken from the agent, then from the session beside which it is shown. An agent that was chosen
    in the form of another one (`of`) sets its own project and tier. Nothing is stored or spent.
    """
    params = request.GET.copy()
    if params.get("of", params.get("agent")) != params.get("agent"):
        params["project"] = params["tier"] = ""
    form = AskForm(params) if params else AskForm()
    question = _question(form, request.GET, params) if params and form.is_valid() else None
    context: dict[str, Any] = {"of": params.get("of", params.get("agent", ""))}
    if question is not None:
        context |= _answered(question, request)
        form = AskForm(_filled(question, form.cleaned_data))
        context["of"] = form.data["agent"]
    context |= {"form": form, "query": form.query()}
    inside = by_htmx(request) and not request.htmx.history_restore_request  # type: ignore[attr-defined]
    template = "sessions/_ask.html" if inside else "sessions/ask.html"
    return render(request, template, context, status=422 if params and question is None else 200)


def preview(request: HttpRequest) -> HttpResponse:
    """Lead from the address that the preview of prompts once had."""
    return redirect(f"{reverse('ask')}?{request.GET.urlencode() or 'agent='}", permanent=True)


def _question(form: AskForm, given: QueryDict, params: QueryDict) -> Question | None:
    cleaned = form.cleaned_data
    agent, project, tier = cleaned["agent"], cleaned["project"], cleaned["tier"]
    project = project or (agent.project if agent else None)
    tier = tier or (agent.tier if agent else None)
    if cleaned["session"]:
        rows = Session.objects.select_related("agent", "project").defer("ingest_state")
        beside = rows.filter(pk=cleaned["session"], receipt__isnull=False).first()
        if beside is None:
            form.add_error("session", f"Session {cleaned['session']} is not there, or has no receipt.")
            return None
    else:
        beside = last_injected(
            tier=tier,
            project_id=project.pk if project else None,
            any_project="project" not in params,
            agent=agent.slug if agent else None,
        )
    if cleaned["session"] and beside and "agent" not in given:
        agent, project = beside.agent, project or beside.project
    is_its_own = bool(cleaned["session"]) and "task" not in given
    session = Session(
        agent=agent,
        project=project,
        tier=max(1, tier or (beside.tier if beside and cleaned["session"] else 1)),
        task=mask(beside.task if beside and is_its_own else cleaned["task"]),
        brief={"write_scope": cleaned["write_scope"]},
    )
    return Question(session, beside, cleaned["budget"])


def _answered(question: Question, request: HttpRequest) -> dict[str, Any]:
    session, beside, at = question.session, question.beside, timezone.now()
    answer = answer_to(session, at=at, budget=question.budget)
    receipt = InjectionReceipt.objects.filter(session=beside).first() if beside else None
    differs = differences(answer.selected, receipt, project_id=session.project_id, at=at) if receipt else None
    answer = answer.beside(differs.new) if differs else answer
    view = request.GET.get("view", "")
    return {
        "session": session,
        "answer": answer,
        "differs": differs,
        "beside": beside,
        "receipt": receipt,
        "good": last_good(beside),
        "untold": _untold(answer.untold[:SHOWN], may=request.user.has_perm("memories.change_memory")),
        "left_out": _left_out(answer),
        "view": view if view in VIEWS and (view != "new" or beside) else VIEWS[0],
        "shown": f":{SHOWN}",
        "folded": f"{SHOWN}:",
    }


def _filled(question: Question, cleaned: Mapping[str, Any]) -> dict[str, Any]:
    session = question.session
    return {
        "agent": session.agent.slug if session.agent else "",
        "task": session.task,
        "project": session.project.slug if session.project else "",
        "tier": str(session.tier),
        "budget": "" if question.budget is None else question.budget,
        "session": cleaned["session"] or "",
        "write_scope": " ".join(cleaned["write_scope"]),
    }


def _untold(lines: Sequence[Line], *, may: bool) -> list[Untold]:
    """Return the lines with what a person who `may` change memories can do about each."""
    ids = [line.memory for line in lines if line.memory is not None]
    memories = Memory.objects.in_bulk(ids)
    changes = MemoryChange.objects.filter(memory__in=ids).order_by().values_list("memory").annotate(Max("pk"))
    latest = dict(changes)
    found = []
    for line in lines:
        memory = memories.get(line.memory or 0)
        verb = _verb(memory) if memory is not None and may else ""
        if memory is None or not verb:
            found.append(Untold(line))
        elif verb == "Decide":
            found.append(Untold(line, verb, reverse("memory", args=[memory.pk])))
        else:
            address = reverse(f"memory-{verb.lower()}", args=[memory.pk])
            found.append(Untold(line, verb, address, latest.get(memory.pk, 0)))
    return found


def _verb(memory: Memory) -> str:
    """Return what a person can do so that a memory is told."""
    if memory.waits:
        return "Decide"
    if not memory.active:
        return "Activate"
    return "Confirm" if memory.confidence < (TAXONOMIES[memory.taxonomy].injected_from or 0.0) else ""


def _left_out(answer: Answer) -> list[LeftOut]:
    counts = (answer.selected.ops.counts, answer.selected.project.counts)
    rows = [
        (label, sum(one.get(name, 0) for one in counts for name in names), query) for names, label, query in REASONS
    ]
    rows = [row for row in rows if row[1]]
    most = max((count for _, count, _ in rows), default=0)
    return [LeftOut(label, count, query, max(1, round(100 * count / most))) for label, count, query in rows]
