"""The fixed list of reasons for which the gate decides, with the words that people read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """One reason: its value is the code that is stored, `words` says it for people."""

    words: str

    def __new__(cls, code: str, words: str) -> Self:
        one = str.__new__(cls, code)
        one._value_ = code
        one.words = words
        return one

    # Form: every taxonomy.
    EMPTY = "empty", "it is empty"
    TOO_SHORT = "too-short", "it is too short to say anything"
    TOO_LONG = "too-long", "it is a document, not an observation"
    UNREADABLE_TEXT = "unreadable-text", "it consists mostly of unreadable characters"
    CREDENTIAL = "credential", "it holds a credential"
    ONLY_CREDENTIAL = "only-credential", "it says nothing but a credential, which was masked"
    DISGUISE = "disguise", "it hides what it says"
    TALKS_TO_MODEL = "talks-to-model", "it talks to the model"
    DANGEROUS_COMMAND = "dangerous-command", "it holds a dangerous command"
    NOT_JUDGED = "not-judged", "it could not be judged"

    # What its session had read, and what people decided before.
    TAINTED = "tainted", "it repeats what its session had read"
    NO_PROJECT = "no-project", "its session belongs to no project; approved, it is told in all of them"
    ECHO = "echo", "it repeats what its session was told"
    HELD_BEFORE = "held-before", "the same text is held already"
    REJECTED_BEFORE = "rejected-before", "a person deactivated the same text before"

    # Discarded: the taxonomy `knowledge`.
    INSTRUCTION = "instruction", "it is an instruction to edit a document"
    NARRATION = "narration", "it narrates what was done"
    TRANSIENT = "transient", "it describes a passing state"
    FILE_LIST = "file-list", "it is a list of files"

    # Held, whatever the model says: the taxonomy `knowledge`.
    URL = "url", "it holds an address of the web"
    COMMAND = "command", "it holds a command"
    ADDRESSES_AGENT = "addresses-agent", "it addresses the agent"

    # The model's word.
    SAID_DISCARD = "said-discard", "the model said discard"
    SAID_HOLD = "said-hold", "the model said hold"
    LOW_CONFIDENCE = "low-confidence", "the model's confidence is below the threshold"
    UNREADABLE_WORD = "unreadable-word", "the model's verdict cannot be read"

    # Speak for a text: they lift a doubt, and save from a discard.
    DECISION = "decision", "it refers to a decision"
    PATH = "path", "it names a path"
    EXACT_NAME = "exact-name", "it names something exactly"


FAVOURABLE = frozenset((Reason.DECISION, Reason.PATH, Reason.EXACT_NAME))
"""Reasons that speak for a text."""

OF_THE_MODEL = frozenset((Reason.SAID_DISCARD, Reason.SAID_HOLD, Reason.LOW_CONFIDENCE, Reason.UNREADABLE_WORD))
"""Reasons that are the model's word, not a rule."""


def in_words(codes: Iterable[str]) -> str:
    """Say the reasons with these codes for people, joined by semicolons. An unknown code stands for itself."""
    by_code = {reason.value: reason.words for reason in Reason}
    return "; ".join(by_code.get(code, code) for code in codes)
