"""A statement: the new text that may become a memory, valid by construction. Pure; nothing folds it again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from claudeops.lib.secrets import find, mask
from memories.capture import fields
from memories.capture.support import Support, Voice
from memories.capture.text import SPACE, fold
from memories.taxonomy import Taxonomy

HUMAN = "human"
"""The source and the channel of what a person typed (`Source.HUMAN`)."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A new observation. `text` is as it was written but for credentials, which are masked before anything sees them.

    `observation` is the folded text, cut to what can be stored.

    `service` is normalised (None = general). `confidence` (0..1) counts only where the taxonomy sets no first one.
    `relevance_score` (0..1), `expires_at` (None: never) and `surface` (its window of time, "" for none) are those of
    the memory, if it makes a new one.
    `key` is the SHA-256 (hexadecimal) of scope and folded text: two statements of a session with one key are the same.
    Raises InvalidMemory for a field that cannot be stored; any text is accepted, the gate judges it.
    """

    category: str
    text: str
    service: str | None = None
    taxonomy: str = "ops"
    confidence: float | None = None
    tags: tuple[str, ...] = ()
    relevance_score: float | None = None
    expires_at: datetime | Literal["by type"] | None = "by type"
    surface: str = ""
    observation: str = field(init=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        policy = fields.checked_taxonomy(self.taxonomy)
        set_field = object.__setattr__  # the class is frozen
        text = mask(self.text)
        folded = fold(text)
        if find(folded):  # a name and its value stood on two lines; invisible characters stay, for the gate
            text = mask(SPACE.sub(" ", self.text))
            folded = mask(fold(text))
        set_field(self, "text", text)
        set_field(self, "category", fields.checked_category(self.category, policy))
        set_field(self, "service", fields.checked_service(self.service))
        set_field(self, "tags", tuple(fields.checked_tags(self.tags)))
        if self.confidence is not None:
            set_field(self, "confidence", fields.checked_confidence(self.confidence))
        if self.relevance_score is not None:
            set_field(self, "relevance_score", fields.checked_confidence(self.relevance_score))
        if isinstance(self.expires_at, datetime):
            set_field(self, "expires_at", fields.checked_end(self.expires_at))
        set_field(self, "surface", fields.checked_surface(self.surface, policy))
        set_field(self, "observation", folded[: fields.LONGEST_OBSERVATION])
        parts = [self.taxonomy, self.category, self.service or "", folded.lower()]
        set_field(self, "key", hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest())

    @property
    def policy(self) -> Taxonomy:
        return fields.checked_taxonomy(self.taxonomy)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a statement comes from.

    `source` is a value of `Source`, `actor` a user name, `agent:<slug>` or `system`; `channel` is how it
    arrived (text, structured, human, import); `at` when it was said (UTC), the time of storing when None.

    `support` says who supports its words, None where nothing of its session is known. `exposure` (a value of
    `Exposure`) and `exposed_to` (names of outside sources) tell what the support touches, or without one what its
    session had read by then. `taint` says why it is not the session's own words (empty = they are), `told` are the ids
    of the memories that the session was told. `arrived_at` (UTC) is when the server got it, where a log states `at`.
    `runs` are the sessions that a lesson by rules was drawn from. `origin` names the transcript
    that it was read from (`Transcript.key`), also where no row of a session stands for it: what one transcript says
    twice counts once, and confirms nothing.
    """

    source: str
    actor: str
    session_id: int | None = None
    tier: int = 0
    project_id: int | None = None
    agent: str | None = None
    channel: str = "text"
    at: datetime | None = None
    exposure: str = "nothing"
    exposed_to: tuple[str, ...] = ()
    taint: str = ""
    told: frozenset[int] = frozenset()
    runs: tuple[int, ...] = ()
    origin: str = ""
    support: Support | None = None
    arrived_at: datetime | None = None

    @property
    def is_vouched_for(self) -> bool:
        """Whether a person said it or outputs of the own house show it."""
        return self.support is not None and self.support.is_known

    @property
    def is_persons(self) -> bool:
        """Whether it is a person's word: typed here, or typed into the session with a receipt."""
        return self.typed or (self.support is not None and self.support.by == Voice.PERSON)

    def supported(self, support: Support) -> Provenance:
        """Return it with who supports its words, exposed to what the support touches and not to all that was read."""
        exposure, sources = self.exposure, self.exposed_to
        if support.by == Voice.OUTSIDE:
            named = tuple(dict.fromkeys(quote.source for quote in support.quotes if quote.source))
            exposure, sources = "outside", named or sources
        elif support.is_known:
            exposure, sources = ("house" if support.by == Voice.HOUSE else "nothing"), ()
        return replace(self, support=support, exposure=exposure, exposed_to=sources)

    @property
    def typed(self) -> bool:
        """Whether a person typed it, in the dashboard, the admin or the command line. Such a text skips the gate."""
        return self.source == HUMAN

    @classmethod
    def typed_by(cls, actor: str) -> Provenance:
        """Return the provenance of what a signed-in person or the operator at the command line typed."""
        return cls(HUMAN, actor, channel=HUMAN)
