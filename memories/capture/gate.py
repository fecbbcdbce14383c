"""Decide whether a text may become a memory: allow, hold or discard. Deterministic, without a database; fails closed.

It has the defaults of its thresholds; those in force are read by `memories.lifecycle.gate_decisions`.

`discard` is for text that says nothing worth keeping. `hold` stores it for review and never injects it: text that
hides what it says, that addresses the model or has the form of an attack (one poisoned tool result would reach every
later session), unreadable text, text too long for an observation. Credentials were masked when the statement was made,
which does not speak against the rest; a text that still holds one is held.

The taxonomy `knowledge` has rules of its own (`knowledge_rules`), and a model may have judged the text before (`Word`).
Its word counts first, but a rule that holds or discards is stronger than its allow. Only a person releases such a text.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

from claudeops.lib.secrets import find
from memories.capture import knowledge_rules
from memories.capture.attack import COMMAND, attack_form, disguise, readings
from memories.capture.reasons import Reason
from memories.taxonomy import KNOWLEDGE


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Confidences (0..1) of the model from which on its word counts.

    `allow`: below it a fact is held. `reference`: the same for a fact that refers to a decision, a path or an exact
    name, and the confidence from which on such a reference lifts the model's hold.
    """

    allow: float = 0.7
    reference: float = 0.5


DEFAULTS = Thresholds()


LONGEST = 10_000
"""Characters. A longer text is a document, not an observation."""

SHORTEST = 5
"""Letters and digits. A shorter text says nothing ("ok", "n/a")."""

SHORTEST_KNOWLEDGE = 12
"""Characters of a text of the taxonomy `knowledge`."""

UNREADABLE_SHARE = 0.3
"""Share of replacement and control characters above which a text counts as unreadable."""

MASK = re.compile(r"\[secret: [^\[\]]{1,60}\]")
WORD = re.compile(r"[^\W_]{2,}")

STRICTNESS = ("allow", "hold", "discard")


@dataclass(frozen=True, slots=True)
class Word:
    """What a model said about a text: `gate` is allow, hold, discard, or anything else (unreadable, so it is held).

    `confidence` (0..1, None: none was stated) says how certain the model is that the text is true and lasts.
    """

    gate: str
    confidence: float | None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """`verdict` is allow, hold or discard; `reason` is for a person (empty when allowed).

    `codes` are those of `reasons.Reason`, the deciding one first; an allowed text has those that spoke for it.
    `confidence` is the model's (0..1), None without its word, which is `word`.
    """

    verdict: str
    reason: str = ""
    codes: tuple[str, ...] = ()
    confidence: float | None = None
    word: Word | None = None


def judge(
    text: str,
    folded: str,
    *,
    taxonomy: str = "ops",
    word: Word | None = None,
    thresholds: Thresholds = DEFAULTS,
    taint: str = "",
    is_vouched_for: bool = False,
) -> Judgement:
    """The verdict on a text as it was written and as folded. Never raises: on an error the verdict is hold.

    `is_vouched_for`: a person said it or outputs of the house show it, so that it may hold a command or an address.
    `taint` says why the text is not its session's own words (empty: it is): what would be allowed is held then.
    """
    try:
        judgement = _judge(text, folded, taxonomy, word, thresholds, taint, is_vouched_for)
    except Exception as error:
        reason = f"could not be judged: {type(error).__name__}: {error}"[:500]
        judgement = Judgement("hold", reason, (Reason.NOT_JUDGED,))
    return replace(judgement, confidence=None if word is None else _share(word.confidence), word=word)


def strictest(first: Judgement, second: Judgement) -> Judgement:
    """Return the stricter of two judgements on one text, the first when they are equal."""
    return max(first, second, key=lambda one: _strictness(one.verdict))


def _strictness(verdict: str) -> int:
    return STRICTNESS.index(verdict) if verdict in STRICTNESS else len(STRICTNESS)


def _judge(
    text: str,
    folded: str,
    taxonomy: str,
    word: Word | None,
    thresholds: Thresholds,
    taint: str,
    is_vouched_for: bool,
) -> Judgement:
    if not folded:
        return Judgement("discard", "empty", (Reason.EMPTY,))
    if len(text) > LONGEST:
        return Judgement("hold", f"longer than {LONGEST:,} characters", (Reason.TOO_LONG,))
    if _unreadable_share(text) > UNREADABLE_SHARE:
        return Judgement("hold", "mostly unreadable characters", (Reason.UNREADABLE_TEXT,))
    is_knowledge = taxonomy == KNOWLEDGE.slug
    # NFKC, so that full-width characters hide nothing; folding removed the invisible ones.
    normal = unicodedata.normalize("NFKC", folded)
    if sum(character.isalnum() for character in normal) < SHORTEST:
        return Judgement("discard", "too short to say anything", (Reason.TOO_SHORT,))
    if is_knowledge and len(normal) < SHORTEST_KNOWLEDGE:
        return Judgement("discard", f"shorter than {SHORTEST_KNOWLEDGE} characters", (Reason.TOO_SHORT,))
    if credentials := find(normal):
        return Judgement("hold", f"holds a credential: {credentials[0].kind}", (Reason.CREDENTIAL,))
    if MASK.search(normal) and len(WORD.findall(MASK.sub(" ", normal))) < 2:
        return Judgement("discard", "says nothing but a credential, which was masked", (Reason.ONLY_CREDENTIAL,))
    if what := disguise(text):
        return Judgement("hold", f"hides what it says: {what}", (Reason.DISGUISE,))
    read = tuple(readings(text, folded))
    for reading in read:
        if what := attack_form(reading):
            reason = Reason.DANGEROUS_COMMAND if what.startswith(COMMAND) else Reason.TALKS_TO_MODEL
            return Judgement("hold", what, (reason,))
    if not is_knowledge and word is None:
        return Judgement("hold", taint, (Reason.TAINTED,)) if taint else Judgement("allow")
    held = knowledge_rules.held(normal, read) if is_knowledge and not is_vouched_for else []
    worthless = knowledge_rules.worthless(normal) if is_knowledge else None
    return _weigh(knowledge_rules.references(normal), held, worthless, word, thresholds, taint)


def _weigh(
    favourable: list[Reason],
    held: list[Reason],
    worthless: Reason | None,
    word: Word | None,
    thresholds: Thresholds,
    taint: str,
) -> Judgement:
    """Judge by the model's word and by the rules: what speaks for a text, what holds it, what discards it."""
    verdict = word.gate if word else "allow"
    if worthless or verdict == "discard":
        codes = [reason for reason in (worthless, Reason.SAID_DISCARD if verdict == "discard" else None) if reason]
        # What a rule throws away is saved by a decision alone: narration and lists name files, too.
        saved = [reason for reason in favourable if reason == Reason.DECISION or not worthless]
        if not saved:
            return _judgement("discard", [*codes, *held])
        return _judgement("hold", [*codes, *held, *saved], f", but {saved[0].words}")
    doubt = _doubt(word, bool(favourable), thresholds) if word else None
    codes = [*held, *([Reason.TAINTED] if taint else []), *([doubt] if doubt else [])]
    if codes:
        return _judgement("hold", codes, words=taint if codes[0] == Reason.TAINTED else "")
    lifted = word is not None and _doubt(word, False, thresholds) is not None
    return Judgement("allow", codes=tuple(favourable) if lifted else ())


def _doubt(word: Word, is_exact: bool, thresholds: Thresholds) -> Reason | None:
    """Return why the model's word does not allow a text; `is_exact`: it refers to something exactly."""
    confidence = _share(word.confidence)
    if word.gate not in ("allow", "hold") or confidence is None:
        return Reason.UNREADABLE_WORD
    if word.gate == "hold" and not is_exact:
        return Reason.SAID_HOLD
    if confidence < (thresholds.reference if is_exact else thresholds.allow):
        return Reason.SAID_HOLD if word.gate == "hold" else Reason.LOW_CONFIDENCE
    return None


def _judgement(verdict: str, codes: list[Reason], but: str = "", *, words: str = "") -> Judgement:
    return Judgement(verdict, (words or codes[0].words) + but, tuple(codes))


def _share(confidence: float | None) -> float | None:
    """Return a confidence within 0..1; None for any other number."""
    return confidence if confidence is not None and 0.0 <= confidence <= 1.0 else None


def _unreadable_share(text: str) -> float:
    if text.isascii() and text.isprintable():
        return 0.0
    total = unreadable = 0
    for character in text:
        if character.isspace():
            continue
        total += 1
        unreadable += character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn")
    return unreadable / total if total else 0.0
