"""Keep texts within the frame in which the observer is shown them. Pure."""

from __future__ import annotations

import re

TAG = re.compile(
    r"(?:[<＜﹤‹〈]|&lt;|&#60;|&#x3c;)(?=\s{0,3}[/／]?\s{0,3}(?:transcript|observations?|segment|narrative|facts?|instructions?|system|human|assistant|user)\b)",
    re.IGNORECASE,
)
LABEL = re.compile(r"\[(?=\s{0,3}\d{1,9}\s{1,3}(?:user|agent|call|result)\s{0,3}\])", re.IGNORECASE)


def framed(text: str) -> str:
    """Take the opening bracket from tags of the prompt and the answer (`‹`), and from labels of turns (`(`)."""
    return LABEL.sub("(", TAG.sub("‹", text))
