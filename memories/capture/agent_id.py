"""The one rule of agent ids: how the name of an agent, a file or a subagent type becomes an id. Pure."""

from __future__ import annotations

import re

LONGEST = 64
SUFFIX = re.compile(r"_*agent\Z")
SEPARATORS = re.compile(r"[\s_-]+")
DROPPED = re.compile(r"[^a-z0-9_\s-]+")


def agent_id(name: str) -> str:
    """Return the id of an agent: "plugins/Data-Engineer Agent" is data_engineer. Empty for a name without one.

    The last part of a path, in lower case; blanks and hyphens are underscores, other characters are dropped, and one
    `_agent` or `agent` at the end is removed unless nothing else is there.
    """
    last = re.split(r"[/\\:]", name.strip().rstrip("/\\:"))[-1].lower()
    plain = SEPARATORS.sub("_", DROPPED.sub("", last.removesuffix(".md"))).strip("_")
    return (SUFFIX.sub("", plain).strip("_") or plain)[:LONGEST].strip("_")
