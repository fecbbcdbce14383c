"""The vocabulary of operations: phrases, synonyms, opposites, light words. Looked up as written, then by stem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from .function_words import words

DATA = Path(__file__).parent / "data"


def entries(name: str) -> list[str]:
    """Read the entries of data/NAME.txt; an indented line continues the one before."""
    return (DATA / f"{name}.txt").read_text(encoding="utf-8").strip().replace("\n    ", " ").splitlines()


PHRASES = entries("phrases")
""""word = phrase | phrase" a line (# where a number must follow). Matched on stems, the longest phrase first."""

SAME = entries("synonyms")
"""A group of synonyms a line, its name first."""

OPPOSITE = entries("opposites")
"""Affirming words | denying words, an opposition a line; with ! only in this exact form."""

EMPTY = words("use take make happen enough occur perform do set go become let come")
"""Verbs without content of their own."""

LIGHT_VERBS = words("run live serve provide handle enable")
LIGHT_NOUNS = words(
    """service system option parameter value policy integration process procedure feature port container instance
    application app component software plugin module operation main version night"""
)
"""Words that add little to the noun or verb beside them; one text may have them and the other not."""

DENYING_VERBS = words(
    """disable deactivate forbid deny disallow refuse reject prohibit block ban retire decommission deprecate fail break
    decrease reduce lower shrink lose drop discard skip omit forget prevent unlock unmount umount uninstall unload"""
)
"""Verbs that always deny; "no" adjectives deny only as predicates ("login is disabled", not "disabled users")."""

VERSIONED = words("version kernel firmware release tag pin image debian ubuntu python php java driver chart")
"""After one of these a bare number is a version, which is a name."""

IMPLIED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "size": words("size space"), "time": words("time duration long"), "percent": words("percentage share"),
        "period": words("frequency periodically regularly"), "clock": words("clock time"),
    }
)  # fmt: skip
"""Nouns that an amount of this dimension implies: 4 GB are a size."""

VALUE_NOUNS = words(
    """mtu ttl limit timeout size interval retention replica count number threshold level priority weight quota memory
    factor keep retain wait retry rate length depth width height delay concurrency parallelism temperature"""
)
"""After one of these a number is its value; after another word it is a label: "node 3", "PHP 8"."""

LABEL_NOUNS = words(
    """port uid gid pid vlan version node disk database channel step line error code status http https raid udp tcp id
    ticket release slot shard rack partition queue index page rule phase tier zone worker server site gpu
    thread floor room bay"""
)
"""After one of these a number is always a label."""

MANNERS = words(
    "synchronous automatic sequential static state root wired verbose quick local remote same public internal"
)
"""Of OPPOSITE, names of manners: who says "asynchronously" denies nothing that does not speak of it."""

RANKED = words("level priority replica")
"""Of VALUE_NOUNS, those that name their like by number: "level 2 alerts", but "the level is 2"."""

EVENT_NOUNS = words("run build test probe check scan report release record import export backup update pass call query")
"""Verbs that are nouns as well, numbered in turn: "run 41 ended"."""

WEEKDAYS = words("monday tuesday wednesday thursday friday saturday sunday")

NOT_NEGATED = words(
    """united unified underused unsealed unplugged unpacked unzipped uncommitted unless regardless wireless nevertheless
    nonetheless useless serverless"""
)
"""Words that look negated but are not."""
