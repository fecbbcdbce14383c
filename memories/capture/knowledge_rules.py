"""Rules of the gate for the taxonomy `knowledge`: what is no knowledge, what only a person may allow, what is exact.

Pure. Knowledge is told to every session of a project and is distilled from whatever a session has read, so that an
address of the web, a command or a text that addresses its reader waits for a person, however sure the model is, unless
a person said it or the house shows it. A fact that says a command is forbidden, or needs sudo, is no command.
The words, in `knowledge.toml`, are those of known forms; hostile meaning in other words is not found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from claudeops.lib.hosts import is_local
from memories.capture.patterns import expressions, names_found, read_table, rule
from memories.capture.reasons import Reason

_PATTERNS = expressions(read_table("knowledge"))


def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name], re.IGNORECASE)


WORTHLESS = (
    (Reason.INSTRUCTION, _compiled("instruction")),
    (Reason.NARRATION, _compiled("narration")),
    (Reason.TRANSIENT, _compiled("transient")),
)
"""What is no knowledge: a matter of how the text begins."""
_FILES_OF = _compiled("files_of")
_ONE_FILE = re.compile(_PATTERNS["one_file"])
_AND = frozenset(("and", "und", "et", "y", "or", "&", "-", "•", "*", "|", "+"))

_FORBIDDEN = _compiled("forbidden")
_ADDRESS = re.compile(r"\bhttps?://([\w.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?(?![\w@])[^\s<>\"'`]*", re.IGNORECASE)
"""An address without a user in it; the host stands in its first group."""
URL, ADDRESSES_ELSEWHERE = _compiled("url"), _compiled("addresses_elsewhere")
PUBLIC_ADDRESS = re.compile(_PATTERNS["public_address"])

HELD = (rule(Reason.ADDRESSES_AGENT, _PATTERNS["addresses"]), rule(Reason.COMMAND, _PATTERNS["command"]))

# What speaks for a text. The letter case of a path and of a name is part of it.
DECISION, PATH = _compiled("decision"), re.compile(_PATTERNS["path"])
EXACT_NAME = re.compile(_PATTERNS["exact_name"])


def worthless(text: str) -> Reason | None:
    """Return why a folded text is no knowledge; None when it may be."""
    for reason, pattern in WORTHLESS:
        if pattern.search(text):
            return reason
    return Reason.FILE_LIST if _lists_files(text) else None


def held(text: str, readings: Iterable[str] = ()) -> list[Reason]:
    """Return why only a person may allow a folded text, whose other `readings` are read as well; in a fixed order."""
    reasons = names_found(HELD, (_FORBIDDEN.sub(" ", text), *readings))
    # Read backwards, or with digits as letters, any text holds short words of other languages, and addresses.
    if Reason.ADDRESSES_AGENT not in reasons and ADDRESSES_ELSEWHERE.search(text):
        reasons.insert(0, Reason.ADDRESSES_AGENT)
    elsewhere = _ADDRESS.sub(lambda match: " " if is_local(match[1]) else match[0], text)
    if URL.search(elsewhere) or PUBLIC_ADDRESS.search(text):
        reasons.append(Reason.URL)
    return reasons


def references(text: str) -> list[Reason]:
    """Return what a folded text refers to exactly, in a fixed order."""
    patterns = ((Reason.DECISION, DECISION), (Reason.PATH, PATH), (Reason.EXACT_NAME, EXACT_NAME))
    return [reason for reason, pattern in patterns if pattern.search(text)]


def _lists_files(text: str) -> bool:
    """Whether a text is three files or more with few words around them, or names files that were changed."""
    pieces = [piece.strip("`'\",;:()[]") for piece in text.replace(",", " ").split()]
    words = [piece for piece in pieces if piece and piece.lower() not in _AND]
    files = sum(_ONE_FILE.match(piece) is not None for piece in words)
    if files >= 2 and _FILES_OF.search(text):
        return True
    return files >= 3 and files >= 0.6 * len(words)
