"""The tabs of a session's page: what it learned, what was injected, events, prompt, answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

from django.db.models import Count, Model, Q, QuerySet
from django.urls import reverse

from claudeops.lib.detail_page import Tab, Tabs, percent, tabs_of
from memories.injection.block import Shares, is_for_task, shares_of
from memories.injection.block import lines_of as lines_of_block
from memories.injection.budget import CHARACTERS_A_TOKEN
from memories.injection.relevant import BY_CONFIDENCE
from memories.models import Change, MemoryChange, Transcript
from memories.taxonomy import AGENT, KNOWLEDGE, OPS, PROJECT
from sessions_app.credit.facts import Fact, Facts, facts_of
from sessions_app.models import (
    CooldownAction,
    Event,
    HookReceipt,
    InjectionReceipt,
    Level,
    LogEntry,
    LogKind,
    ServiceCheck,
    Session,
)
from sessions_app.web.session_band import Counts

LEARNED, INJECTED, EVENTS, PROMPT, ANSWER = "learned", "injected", "events", "prompt", "answer"
OBSERVED = "observed"
SHOWN = 100
MARKED_READ = 300
"""Log entries with a memory marker or a learning among which the line of a memory is searched."""
FORMS = ("[MEMORY:", "# add to memory", "# memorize", "# remember", '"remember"', '"memories"')
"""What such entries hold, in any letter case."""
COMPARED = 80
"""First characters of a statement by which its line is found."""

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Cut(Generic[Row]):
    rows: list[Row]
    more: bool


def cut(rows: QuerySet[Row], most: int = SHOWN) -> Cut[Row]:
    items = list(rows[: most + 1])
    return Cut(items[:most], len(items) > most)


def receipt_of(session: Session) -> InjectionReceipt | None:
    """Return the record of what it was told; None also when it never started: nothing was."""
    return None if session.never_started else InjectionReceipt.objects.filter(session=session).first()


def counts_of(session: Session, receipt: InjectionReceipt | None) -> Counts:
    """Count the results of the session, in three queries."""
    facts = Transcript.objects.filter(session=session).order_by().annotate(facts=Count("segments__facts"))
    observed = list(facts.values_list("facts", flat=True))
    levels = dict(Event.objects.filter(session=session).order_by().values_list("level").annotate(Count("pk")))
    return Counts(
        learned=f"{MemoryChange.objects.filter(session=session).count():,}",
        injected=f"{len(receipt.included):,}" if receipt else "0",
        events=f"{sum(levels.values()):,}",
        gravest=_gravest(levels),
        observed=f"{sum(observed):,}" if observed else "",
    )


def _gravest(levels: dict[str, int]) -> str:
    """Return "2 critical"; "9, 2 critical" beside others; empty without a warning or worse."""
    for level in (Level.CRITICAL, Level.WARNING):
        if number := levels.get(level):
            others = f"{sum(levels.values()):,}, " if len(levels) > 1 else ""
            return f"{others}{number:,} {level.label}"
    return ""


def tabs_for(session: Session, counts: Counts, asked: str) -> Tabs:
    """Return the tabs; with that of its transcript when it was observed.

    Unless one is asked for, the first of learned, answer and injected with content is shown.
    """
    tabs = (
        Tab(LEARNED, "Learned", counts.learned),
        *((Tab(OBSERVED, "Observed", counts.observed),) if counts.observed else ()),
        Tab(INJECTED, "Injected", counts.injected),
        Tab(EVENTS, "Events", counts.events),
        Tab(PROMPT, "Prompt"),
        Tab(ANSWER, "Answer"),
    )
    answered = not session.is_open and (session.response or session.structured or session.error)
    default = ANSWER if counts.learned == "0" and answered else LEARNED
    if counts.learned == "0" and not answered and counts.injected != "0":
        default = INJECTED
    return tabs_of(tabs, asked, default)


def content_of(tab: str, session: Session, receipt: InjectionReceipt | None) -> dict[str, Any]:
    """Read what the shown tab needs."""
    if tab == LEARNED:
        return {"learned": learned_of(session)}
    if tab == EVENTS:
        return {
            "events": cut(Event.objects.filter(session=session).order_by("created_at", "pk")),
            "cooldowns": cut(CooldownAction.objects.filter(session=session).order_by("created_at", "pk")),
            "checks": cut(ServiceCheck.objects.filter(session=session).order_by("healthy", "service")),
        }
    if tab == INJECTED:
        context: dict[str, Any] = {"injected": injected_of(session, receipt)} if receipt else {}
        receipts = HookReceipt.objects.filter(session=session).order_by("at", "pk")
        return context | {"hook_receipts": cut(receipts.defer("text"))}
    return {}


# -- learned -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Learned:
    """A change that the session made to a memory. `words` says what: "confirmed, 0.43 to 0.48".

    `review` is the address of the inbox when the memory waits for a person; `seq` the log line that says it (None: no
    line does).
    """

    change: MemoryChange
    text: str
    icon: str
    words: str
    review: str
    seq: int | None


WORDS = {
    Change.CREATED: ("proposal", "new"),
    Change.REINFORCED: ("ok", "confirmed"),
    Change.CONTRADICTED: ("disagree", "contradicted"),
}


def learned_of(session: Session) -> Cut[Any]:
    """Return what the session created, confirmed and contradicted, in its order; two queries."""
    changes = MemoryChange.objects.filter(session=session).select_related("memory").order_by("at", "pk")
    page = cut(changes)
    statements = [statement_of(change) for change in page.rows]
    lines = lines_of(statements, marked_entries(session)) if page.rows else []
    rows: list[Any] = [
        _learned(change, text, line) for change, text, line in zip(page.rows, statements, lines, strict=True)
    ]
    return Cut(rows, page.more)


def _learned(change: MemoryChange, text: str, seq: int | None) -> Learned:
    icon, words = WORDS.get(Change(change.kind), ("info", change.get_kind_display()))
    memory = change.memory
    before, after = change.before.get("confidence"), change.after.get("confidence")
    if change.kind != Change.CREATED and isinstance(before, float) and isinstance(after, float):
        words += f", {before:.2f} to {after:.2f}"
    review = ""
    if memory is not None and memory.waits:
        held = memory.awaits_review
        icon = "held"
        reason = memory.verdict_reason if held else memory.unconfirmed
        words += (", held" if held else ", unconfirmed") + (f": {reason}" if reason else "")
        kind = "held" if held else "unconfirmed"
        review = f"{reverse('inbox')}?view={kind}&item={kind}-{memory.pk}"
    shown = memory.observation if memory is not None else text
    return Learned(change, shown, icon, words, review, seq)


def statement_of(change: MemoryChange) -> str:
    """Return the text that arrived: of a new memory its own."""
    return str(change.evidence.get("text") or change.after.get("observation") or "")


def marked_entries(session: Session | int) -> list[tuple[int, str]]:
    """Return (number, text) of the lines of a session's log that hold a memory marker or a learning, the first ones."""
    says_so = reduce(or_, (Q(text__icontains=form) for form in FORMS))
    rows = LogEntry.objects.filter(says_so, session=session, kind=LogKind.TEXT)
    return list(rows.order_by("seq").values_list("seq", "text")[:MARKED_READ])


def lines_of(statements: Iterable[str], marked: Sequence[tuple[int, str]]) -> list[int | None]:
    """Return the number of the first line that contains each statement; None for one that is in no line. Pure."""
    folded = [(seq, " ".join(text.split())) for seq, text in marked]
    heads = [" ".join(text.split())[:COMPARED] for text in statements]
    return [next((seq for seq, text in folded if head and head in text), None) for head in heads]


# -- injected ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """One memory of the receipt: rank, tokens of its line, why it is in, and what the session then said about it."""

    rank: int
    entry: Mapping[str, Any]
    tokens: int
    percent: int
    for_task: bool
    fact: Fact | None
    then: str

    @property
    def why(self) -> str:
        """The rest of its reason, beside the tag: "score 0.91"."""
        reason = str(self.entry.get("reason", ""))
        return reason.removeprefix(BY_CONFIDENCE).removeprefix(RELEVANT).strip(": ")


@dataclass(frozen=True, slots=True)
class ToldByScore:
    """One memory of the project, or of knowledge, in the prompt, with the parts of its score. `then` as in `Told`."""

    rank: int
    entry: Mapping[str, Any]
    tokens: int
    fact: Fact | None
    then: str


@dataclass(frozen=True, slots=True)
class ToldOfFile:
    """One line of the agent's memory file in the prompt. `then` as in `Told`."""

    entry: Mapping[str, Any]
    then: str


@dataclass(frozen=True, slots=True)
class InjectedRows:
    """`left` counts what was left out by reason; `answered`: a row has `then`; `facts`: of all it was shown."""

    rows: list[Told]
    facts: Facts
    shares: Shares
    left: list[tuple[str, int]]
    answered: bool
    project: list[ToldByScore]
    knowledge: list[ToldByScore]
    agent: list[ToldOfFile]


LEFT = ("over_budget", "outside_window", "unconfirmed", "below_threshold", "inactive", "held", "other_project")
RELEVANT = "relevant to the task"


def injected_of(session: Session, receipt: InjectionReceipt) -> InjectedRows:
    """Return the receipt as rows and as shares of its budget, with what the session said and made of them."""
    facts = facts_of(session)
    changes = MemoryChange.objects.filter(session=session, memory__in=[entry["id"] for entry in receipt.included])
    then = dict(changes.order_by("at", "pk").values_list("memory", "kind"))
    included = receipt.of(OPS.slug)
    lines = lines_of_block(receipt.text, included)
    tokens = {line.entry["id"]: len(line.text) // CHARACTERS_A_TOKEN for line in lines if line.entry}
    longest = max(tokens.values(), default=0)
    rows = [
        Told(
            rank=place,
            entry=entry,
            tokens=tokens.get(entry["id"], 0),
            percent=percent(tokens.get(entry["id"], 0), longest) or 0,
            for_task=is_for_task(entry),
            fact=facts.by_memory.get(entry["id"]),
            then=_words(then.get(entry["id"])),
        )
        for place, entry in enumerate(included, start=1)
    ]
    project, knowledge = (
        [
            ToldByScore(place, entry, tokens_of(entry), facts.by_memory.get(entry["id"]), _words(then.get(entry["id"])))
            for place, entry in enumerate(receipt.of(taxonomy), start=1)
        ]
        for taxonomy in (PROJECT.slug, KNOWLEDGE.slug)
    )
    agent = [ToldOfFile(entry, _words(then.get(entry["id"]))) for entry in receipt.of(AGENT.slug)]
    answered = any(row.then for group in (rows, project, knowledge, agent) for row in group)
    shares = shares_of(lines, tokens=receipt.tokens, budget=receipt.budget)
    rest = [(name, receipt.counts[name]) for name in LEFT if receipt.counts.get(name)]
    return InjectedRows(rows, facts, shares, rest, answered, project, knowledge, agent)


def _words(kind: str | None) -> str:
    return WORDS[Change(kind)][1] if kind in WORDS else ""


def tokens_of(entry: Mapping[str, Any]) -> int:
    """Return the tokens of a line in the prompt that ends with the memory's id."""
    line = f"- [{entry.get('category', '')}] {entry.get('observation', '')} [m{entry['id']}]\n"
    return len(line) // CHARACTERS_A_TOKEN
