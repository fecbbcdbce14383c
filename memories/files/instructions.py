"""The instructions of an agent with its memory: base, the memory protocol, and the file. Text in, text out: pure.

For runtimes without hooks, `put` writes protocol and memory between two markers into an agent's definition.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from memories.errors import InvalidMemory
from memories.files.sections import SectionSet
from memories.taxonomy import AGENT

BEGIN = "<!-- claudeops agent memory: begin. Written by `manage.py agent-memory instructions`; edit outside of it. -->"
END = "<!-- claudeops agent memory: end -->"
BEGINS = "<!-- claudeops agent memory: begin"
BLOCK = re.compile(rf"\r?\n{re.escape(BEGINS)}.*?{re.escape(END)}(?:\r?\n)?", re.DOTALL)
FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
LONGEST_CONTENT = 100
"""Characters of one learning that an agent may add."""

BRIEFING = "AGENT MEMORY - PROJECT-SPECIFIC KNOWLEDGE:"
NOTHING_YET = "(Nothing is known yet.)"
REVIEW = (
    "Review this before you begin: follow the patterns and guidelines that apply to the task, and avoid the mistakes "
    "it names. These are notes to weigh, not orders: where what you see disagrees, believe what you see, and record it."
)

EXAMPLES = {
    "pattern": "Each view has a test that runs it signed out",
    "architecture": "The importer writes through the queue, never to the table",
    "guideline": "Money is stored in cents, as a whole number",
    "mistake": "A migration without its reverse blocked the release of May",
    "strategy": "Read the failing test before the code that it covers",
    "integration": "The mail service answers 202 before it has stored anything",
    "performance": "The report needs the index on (project, day): 40 ms, else 9 s",
    "context": "The API moves to version 3 until the end of March",
    "learning": "The suite takes 4 minutes with two workers and 9 with one",
}


def protocol(sections: SectionSet | None = None) -> str:
    """Return how an agent reads and extends its memory; `sections` name where each type goes."""
    columns = ["type", *(["section"] if sections else []), "example"]
    rows = [[kind, *([sections.section_of(kind)] if sections else []), EXAMPLES[kind]] for kind in AGENT.categories]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows))
    return _protocol().replace("{longest}", str(LONGEST_CONTENT)).replace("{table}", table)


@cache
def _protocol() -> str:
    return Path(__file__).with_name("protocol.md").read_text(encoding="utf-8").strip()


def rendered(base: str, memory: str, sections: SectionSet) -> str:
    """Return the whole instructions: `base`, the protocol, and the memory as it is told (empty: nothing yet)."""
    return "\n\n".join(filter(None, [base.strip(), protocol_and_memory(memory, sections)])) + "\n"


def section(memory: str, sections: SectionSet) -> str:
    """Return the section of a composed prompt: what is known, below headings of level 3, then the protocol."""
    return "\n\n".join(filter(None, [memory, REVIEW if memory else "", protocol(sections)]))


def protocol_and_memory(memory: str, sections: SectionSet) -> str:
    content = memory or NOTHING_YET
    return f"## Agent Memory\n\n{protocol(sections)}\n\n## PROJECT-SPECIFIC MEMORY\n\n{content}"


def briefing(memory: str) -> str:
    """Return what a subagent is told before its task."""
    return "\n\n".join([BRIEFING, memory or NOTHING_YET, REVIEW, protocol()])


def put(definition: str, memory: str, sections: SectionSet) -> str:
    """Return an agent's definition with protocol and memory between the markers: in their place, else at the end.

    What stands outside of the markers stays as it is, its line ends too, and `removed` gives it back. Raises
    InvalidMemory for markers that do not belong together.
    """
    before, after = _around(definition) or (definition, "")
    # Behind a carriage return of its own, a line feed alone would make the two a break of the block's.
    new_line = "\r\n" if "\r\n" in definition or before.endswith("\r") else "\n"
    block = f"{BEGIN}\n{protocol_and_memory(memory, sections)}\n{END}\n".replace("\n", new_line)
    return f"{before}{new_line}{block}{after}"


def removed(definition: str) -> str:
    """Return the definition without the markers and what is between them. Raises InvalidMemory as `put` does."""
    return "".join(_around(definition) or (definition,))


def body_of(definition: str) -> str:
    """Return the definition without its front matter and without the block. Raises InvalidMemory as `put` does."""
    return FRONT_MATTER.sub("", removed(definition), count=1)


def _around(definition: str) -> tuple[str, str] | None:
    """Return what stands before and after the markers; None without them.

    The block has lines of its own: the line breaks before and after it are the block's.
    """
    if (definition.count(BEGINS), definition.count(END)) == (0, 0):
        return None
    match = BLOCK.search(definition)
    if match is None or definition.count(BEGINS) != 1 or definition.count(END) != 1:
        raise InvalidMemory(
            "The markers of the agent memory do not belong together: one of them is missing, or there are several.",
            f"Remove the lines that begin with {BEGINS}, and write it again.",
        )
    return definition[: match.start()], definition[match.end() :]
