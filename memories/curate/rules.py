"""Tier 1 of the triage: what rules alone decide about a proposal. Pure.

A rule promotes what refers to something exactly, is certain, new and of trusted lineage. It rejects what is no
knowledge, and merges what an entry says already. Whatever a poisoned text would want (a command, an address, a hard
rule, words to the agent) never passes here unless an operator said it, and `only_a_person` says that no model passes
it either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memories.capture import gate, knowledge_rules, topics
from memories.capture.attack import readings
from memories.capture.reasons import FAVOURABLE, Reason, in_words
from memories.capture.text import fold
from memories.curate.words import likeness, words_of
from memories.matching import Kind, read_ahead, relation
from memories.models.curating import ProposalKind, ProposalVerdict
from memories.models.memory import Trust
from memories.taxonomy import KNOWLEDGE

CERTAIN = 0.8
"""A rule promotes above this confidence."""
DOUBTFUL = 0.3
"""A rule rejects below this confidence."""
ALIKE = 0.7
"""Share of the words of one text that another has, from which they are too much alike for a rule."""
LONGEST = 500
"""Characters of an entry that rules write or merge; a longer text is no compressed one."""
NEXT_TIER = ""

OWN = (Trust.OPERATOR, Trust.SESSION)
"""Lineage that a rule or a model may promote."""
RISKS = (Reason.COMMAND, Reason.URL, Reason.ADDRESSES_AGENT)
"""What the gate holds of knowledge, and an operator may have said. What else it holds is risky whoever said it."""
HARD_RULE = "hard-rule"
HARD = re.compile(
    r"\b(?:always|never|ever|must|mustn't|shall|shan't|should(?:n't)?|ought|mandatory|compulsory|obligatory|forbidden|"
    r"prohibited|not (?:allowed|permitted)|ha(?:s|ve|d) to|need(?:s|ed)? to|(?:is|are) required|do not|don't|may not|"
    r"cannot be|under no circumstances|no exceptions?|at all times|in (?:all|any|every) cases?|by all means|"
    r"muss|mussen|darf|durfen|verboten|nie(?:mals)?|doit|doivent|jamais|interdit|debe[n]?|nunca|prohibido|deve|vietato|"
    r"moet(?:en)?|nooit|musi|nigdy)\b"
    rf"|{topics.PATTERNS['always']}|{topics.PATTERNS['norms']}",
    re.IGNORECASE,
)

# What a model writes around a text, or instead of one.
ARTEFACT = re.compile(
    r"</?\s?(?:proposals?|section|change|evidence|add|remove|kind|target|text)\b|^(?:```|~~~|\{\"|\[\{)|"
    r"^\W{0,3}(?:n/?a|none|null|nil|undefined|todo|tbd|tba|fixme|placeholder|example|lorem ipsum|nothing|no changes?|"
    r"see above|as above|same as before|unchanged|the entry|new text|old text|\.{3}|…)\W{0,3}$|"
    r"\bas an? (?:ai|language model)\b|\bhere (?:is|are) the (?:proposal|change|updated)|"
    r"\b(?:observation|proposal|entry|evidence) (?:#|no\.? ?|number )?\d+\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Given:
    """A proposal and what it is decided by.

    `confidence` is 0..1, None where nobody stated one. `entries` are the texts of the file it would change.
    `rejected_before`: a person rejected the same text. `provisional`: one of its observations waits for a confirmation.
    """

    kind: str
    section: str
    text: str
    target: str = ""
    confidence: float | None = None
    trust: str = Trust.EXTERNAL
    entries: Sequence[str] = ()
    rejected_before: bool = False
    provisional: bool = False


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the rules say: `verdict` is promote, reject, merge, review (a person decides) or "" (the next tier).

    `rule` is a stable code, `reason` says it for people. With merge, `entry` is the text of the entry and `merged` the
    text of both, which is the entry's where the proposal adds nothing.
    """

    verdict: str
    rule: str
    reason: str
    merged: str = ""
    entry: str = ""


def decide(given: Given) -> Ruling:
    """Return what tier 1 decides. Deterministic; never raises on any text."""
    text, target = fold(given.text), fold(given.target)
    if given.kind == ProposalKind.REMOVE:
        return _removal(given, target)
    if refused := _rejected(given, text):
        return refused
    if given.kind == ProposalKind.CHANGE and same(text, target):
        return Ruling(ProposalVerdict.REJECT, "no-change", "it changes nothing")
    others = [entry for entry in given.entries if given.kind != ProposalKind.CHANGE or not same(entry, target)]
    if any(same(text, entry) for entry in others):
        return Ruling(ProposalVerdict.REJECT, "duplicate", "an entry says exactly this")
    if why := only_a_person(given):
        return Ruling(ProposalVerdict.REVIEW, _code(given), why)
    if given.kind == ProposalKind.CHANGE and not _has(given.entries, target):
        return Ruling(ProposalVerdict.REVIEW, "no-such-entry", "the entry that it changes is not in the file")
    if given.trust not in OWN:
        return _next("lineage", f"its least trusted source is {Trust(given.trust).label}")
    if near := _near(given, text, others):
        return near
    return _promotion(given, text, target)


def only_a_person(given: Given) -> str:
    """Return why neither a rule nor a model may promote a proposal, for people; "" when they may.

    It is about what the text holds, not about whether it is good. A text of an operator may hold a command, an
    address or a hard rule; one that hides what it says, a credential or an attack waits for a person whoever said it.
    """
    return in_words(_held(given)).replace(HARD_RULE, "it states a hard rule")


def may_promote(given: Given) -> str:
    """Return why no model may promote a proposal (it may reject it), for people; "" when it may."""
    if why := only_a_person(given):
        return why
    if given.trust not in OWN:
        return f"its least trusted source is {Trust(given.trust).label}"
    return "one of its observations waits for a confirmation" if given.provisional else ""


def same(one: str, other: str) -> bool:
    """Whether two texts are one but for case, spaces and the stop at the end."""
    return _bare(one) == _bare(other)


def merged(entry: str, text: str) -> str:
    """Return the text of two that say the same: the one that says more, or both where each says something of its own.

    "" when both together are too long for an entry.
    """
    old, new = words_of(entry), words_of(text)
    if new <= old:
        return entry
    if old <= new:
        return text
    joined = f"{_unstopped(entry)}; {text}"
    return joined if len(joined) <= LONGEST else ""


def _held(case: Given) -> list[str]:
    """Return the codes for which only a person may promote the text."""
    text = fold(case.text)
    if not text:
        return []
    judged = gate.judge(case.text, text, taxonomy=KNOWLEDGE.slug)
    codes: list[str] = [code for code in judged.codes if code not in FAVOURABLE] if judged.verdict == "hold" else []
    if judged.verdict != "hold":  # a text that the gate would discard can hold something as well
        codes = list(knowledge_rules.held(text, readings(case.text, text)))
    if any(HARD.search(reading) for reading in (text, *readings(case.text, text))):
        codes.append(HARD_RULE)
    if case.trust == Trust.OPERATOR:
        codes = [code for code in codes if code not in (*RISKS, HARD_RULE)]
    return codes


def _code(case: Given) -> str:
    return str(_held(case)[0])[:32]


def _rejected(case: Given, text: str) -> Ruling | None:
    """Reject what is no knowledge, whatever else it holds."""
    if ARTEFACT.search(text):
        return Ruling(ProposalVerdict.REJECT, "artefact", "it is an artefact of the model, not a statement")
    judged = gate.judge(case.text, text, taxonomy=KNOWLEDGE.slug)
    if judged.verdict == "discard" and judged.codes[0] != Reason.SAID_DISCARD:
        return Ruling(ProposalVerdict.REJECT, str(judged.codes[0]), judged.reason)
    if case.confidence is not None and case.confidence < DOUBTFUL:
        return Ruling(ProposalVerdict.REJECT, "low-confidence", f"its confidence is below {DOUBTFUL:g}")
    if case.rejected_before:
        return Ruling(ProposalVerdict.REJECT, "rejected-before", "a person rejected the same text before")
    return None


def _removal(case: Given, target: str) -> Ruling:
    if not _has(case.entries, target):
        return Ruling(ProposalVerdict.REJECT, "no-such-entry", "the entry that it removes is not in the file")
    if case.rejected_before:
        return Ruling(ProposalVerdict.REJECT, "rejected-before", "a person rejected the same removal before")
    return _next("removal", "a rule removes nothing")


def _near(case: Given, text: str, entries: Iterable[str]) -> Ruling | None:
    """Find the entry that says what the text says, or that is too much like it for a rule."""
    candidates = [entry for entry in entries if words_of(entry) & words_of(text)]
    read_ahead([text, *candidates])
    close = None
    for entry in sorted(candidates, key=lambda entry: -likeness(entry, text)):
        comparison = relation(entry, text)
        if comparison.kind is Kind.REINFORCES:
            both = merged(entry, text)
            doubtful = case.provisional or (case.trust != Trust.OPERATOR and both != entry and topics.topics(text))
            if not both or doubtful or case.kind == ProposalKind.CHANGE:
                return _next("near-duplicate", f"it says what an entry says: {entry[:120]}")
            return Ruling(ProposalVerdict.MERGE, "near-duplicate", f"an entry says this: {entry[:120]}", both, entry)
        if comparison.kind is Kind.CONTRADICTS:
            close = close or _next("contradiction", f"an entry says otherwise: {entry[:120]}")
        elif likeness(entry, text) >= ALIKE:  # such as another port of the same service
            close = close or _next("near-duplicate", f"an entry says nearly the same: {entry[:120]}")
    return close


def _promotion(case: Given, text: str, target: str) -> Ruling:
    """Promote when nothing is missing; else say the first thing that is."""
    if case.provisional:
        return _next("provisional", "one of its observations waits for a confirmation")
    if case.section not in KNOWLEDGE.categories:
        return _next("no-section", "its section is none of the categories")
    if case.confidence is None or case.confidence <= CERTAIN:
        return _next("confidence", f"its confidence is not above {CERTAIN:g}")
    references = knowledge_rules.references(text)
    if not references:
        return _next("no-reference", "it refers to nothing exactly")
    if len(text) > LONGEST:
        return _next("too-long", f"it is longer than {LONGEST} characters")
    if case.trust != Trust.OPERATOR and (about := topics.topics(case.text)):
        return _next("topic", f"it is about {', '.join(about)}")
    if case.kind == ProposalKind.CHANGE and case.trust != Trust.OPERATOR and not words_of(target) <= words_of(text):
        return _next("takes-away", "it takes away something that the entry says")
    why = f"{in_words(references)}; its confidence is {case.confidence:.2f}, its lineage trusted, and no entry says it"
    return Ruling(ProposalVerdict.PROMOTE, str(references[0]), why)


def _next(rule: str, reason: str) -> Ruling:
    return Ruling(NEXT_TIER, rule, reason)


def _has(entries: Iterable[str], target: str) -> bool:
    return any(same(entry, target) for entry in entries)


def _bare(text: str) -> str:
    return _unstopped(fold(text)).casefold()


def _unstopped(text: str) -> str:
    return text.rstrip(".;, ")
