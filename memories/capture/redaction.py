"""Remove credentials from a text before it is sent to another host. Pure.

Fails closed: a text that still looks like a credential afterwards is replaced as a whole.
"""

from __future__ import annotations

import re
import unicodedata

from memories.capture.gate import CREDENTIALS, credential
from memories.capture.text import fold

WITHHELD = "(withheld: {kind})"
PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.IGNORECASE | re.DOTALL
)


def without_credentials(text: str) -> str:
    """The text with each credential replaced by its kind; unchanged when it has none.

    A replacement reaches to the next white space or quote: a pattern may end before the secret does.
    """
    kind = credential(text)
    if not kind:
        return text
    found = PRIVATE_KEY.sub(WITHHELD.format(kind="a private key"), unicodedata.normalize("NFKC", fold(text)))
    for pattern, what in CREDENTIALS:
        whole = re.compile(f"(?:{pattern.pattern})[^\\s\"']*", pattern.flags)
        found = whole.sub(WITHHELD.format(kind=what), found)
    return WITHHELD.format(kind=kind) if credential(found) else found
