"""Validate the fields of a memory: return the value to store or raise InvalidMemory. Pure."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime

from claudeops.lib import times
from claudeops.lib.secrets import find, mask
from memories.capture.text import fold, normalise_service
from memories.capture.window import parse
from memories.errors import InvalidMemory
from memories.taxonomy import AGENT as AGENT_FILES
from memories.taxonomy import TAXONOMIES, Taxonomy

LONGEST = 64
MOST_BYTES = 200
"""A file's name may have 255, with what stands around the id."""
SUFFIX = re.compile(r"_*agent\Z")
SEPARATORS = re.compile(r"[\s_-]+")
CATEGORIES = "LMN"
"""The general categories of Unicode that an id keeps: letters, their marks, numbers."""


def agent_id(name: str) -> str:
    """Return the id of an agent: "plugins/Data-Engineer Agent" is data_engineer. Empty for a name without one.

    The last part of a path, in lower case; blanks and hyphens are underscores, letters and digits of any script stay,
    and one `_agent` or `agent` at the end is removed unless nothing else is there. A name that has other characters, or
    is too long, gets six digits of its SHA-256: two names never share an id.
    """
    last = re.split(r"[/\\:]", unicodedata.normalize("NFC", name).strip().rstrip("/\\:"))[-1].lower()
    plain = SEPARATORS.sub("_", last.removesuffix(".md")).strip("_")
    whole = SUFFIX.sub("", plain).strip("_") or plain
    word = "".join(one for one in whole if one == "_" or unicodedata.category(one)[0] in CATEGORIES).strip("_")
    if not word or (word == whole and len(word) <= LONGEST and len(word.encode()) <= MOST_BYTES):
        return word
    mark = f"_{hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()[:6]}"
    cut = word.encode()[: MOST_BYTES - len(mark)].decode("utf-8", "ignore")[: LONGEST - len(mark)]
    return f"{cut.rstrip('_')}{mark}"


SERVICE_LENGTH = 64
SERVICE = re.compile(rf"[a-zA-Z0-9._-]{{1,{SERVICE_LENGTH}}}")
AGENT = re.compile(r"[a-z0-9_-]{1,64}")
LONGEST_OBSERVATION = 10_000
LONGEST_TAG = 50
MOST_TAGS = 20


def checked_taxonomy(slug: str) -> Taxonomy:
    if slug not in TAXONOMIES:
        raise InvalidMemory(f"taxonomy is {slug!r}; allowed are {', '.join(TAXONOMIES)}.", field="taxonomy")
    return TAXONOMIES[slug]


def checked_category(category: str, taxonomy: Taxonomy) -> str:
    if category not in taxonomy.categories:
        allowed = ", ".join(taxonomy.categories)
        raise InvalidMemory(f"category is {category!r}; {taxonomy.slug} memories have {allowed}.", field="category")
    return category


def checked_service(service: str | None) -> str | None:
    if service is not None and not isinstance(service, str):  # a value of a JSON file
        raise InvalidMemory(f"service is {service!r}; allowed is a name, or nothing for general.", field="service")
    name = normalise_service(service)
    if name is not None and (credentials := find(service or "")):
        raise InvalidMemory(
            f"service looks like a credential ({credentials[0].kind}); give the name of the service.", field="service"
        )
    if name is not None and not SERVICE.fullmatch(name):
        raise InvalidMemory(
            f"service is {service!r}; allowed is one word of letters, digits, dots, hyphens and underscores, at most "
            f"{SERVICE_LENGTH} characters, or nothing for general.",
            field="service",
        )
    return name


def checked_agent(slug: str, taxonomy: str = "") -> str | None:
    """Return the slug of an agent, None for an empty one; in the agent taxonomy its id, by the one rule of ids."""
    text = fold(slug)
    has_file = taxonomy == AGENT_FILES.slug
    name = agent_id(text) if has_file else text.lower()
    if (text and not name) or (name and not has_file and not AGENT.fullmatch(name)):
        raise InvalidMemory(
            f"agent is {slug!r}; allowed is a slug of letters, digits, hyphens and underscores.", field="agent"
        )
    return name or None


def checked_observation(observation: str) -> str:
    """Fold an observation to one line, with its credentials masked."""
    text = fold(mask(observation))
    if not any(character.isalnum() for character in text):
        raise InvalidMemory("observation is empty; write what was observed, in one sentence.", field="observation")
    if len(text) > LONGEST_OBSERVATION:
        raise InvalidMemory(
            f"observation has {len(text):,} characters; at most {LONGEST_OBSERVATION:,} are stored.",
            field="observation",
        )
    return text


def checked_confidence(confidence: float) -> float:
    """Clamp to 0..1 and round to six decimals, so that 0.7 + 0.1 is 0.8. Refuses NaN and infinity."""
    try:
        value = float(confidence)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidMemory(f"confidence is {confidence!r}; allowed is a number from 0 to 1.", field="confidence")
    return round(min(1.0, max(0.0, value)), 6)


def check_typed_confidence(confidence: float | None) -> None:
    """Refuse a confidence beyond 0..1 that a person typed: 7 is a mistake, not certainty. None is none."""
    if confidence is not None and checked_confidence(confidence) != round(confidence, 6):
        raise InvalidMemory(f"confidence is {confidence:g}; allowed is a number from 0 to 1.", field="confidence")


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Fold the tags, in their order and without credentials; drop repetitions and empty ones."""
    unique = list(dict.fromkeys(fold(mask(str(tag))) for tag in tags))
    unique = [tag for tag in unique if tag]
    if len(unique) > MOST_TAGS or any(len(tag) > LONGEST_TAG for tag in unique):
        raise InvalidMemory(f"tags: at most {MOST_TAGS}, each of at most {LONGEST_TAG} characters.", field="tags")
    return unique


def checked_surface(text: str, taxonomy: Taxonomy) -> str:
    """Return the window of time in which a memory is told, as it is stored; "" for none."""
    if not fold(text):
        return ""
    if taxonomy == AGENT_FILES:
        raise InvalidMemory("A memory of an agent's file is always in it.", "Leave surface empty.", field="surface")
    return parse(text).text


def checked_end(at: datetime) -> datetime:
    """Return the time when a memory expires, in UTC; one in the past ends it at the next sweep."""
    if at.tzinfo is None or not times.may_end(at):
        allowed = f"{times.EARLIEST.year} to {times.LATEST.year}"
        raise InvalidMemory(f"expires_at is {at}; allowed are the years {allowed}, with a zone.", field="expires_at")
    return times.in_utc(at)
