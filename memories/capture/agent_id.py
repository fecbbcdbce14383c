"""The one rule of agent ids: how the name of an agent, a file or a subagent type becomes an id. Pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata

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
