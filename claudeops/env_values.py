"""How the raw value of an environment variable is read: one small function for each kind of value.

Each refuses what it does not take, and says what is allowed. Knows no variable.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

BASE_DIR = Path(__file__).resolve().parent.parent

TRUE = {"1", "true", "yes", "on", "y", "t"}
FALSE = {"0", "false", "no", "off", "n", "f", ""}


class Refused(ValueError):
    """A raw value that the variable's reader does not take; the text says what is allowed."""


def text(raw: str) -> str:
    return raw.strip()


def boolean(raw: str) -> bool:
    word = raw.strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise Refused("true or false")


def whole(low: int, high: int) -> Callable[[str], int]:
    def read(raw: str) -> int:
        try:
            value = int(raw.strip())
        except ValueError:
            raise Refused(f"a whole number from {low} to {high}") from None
        if not low <= value <= high:
            raise Refused(f"a whole number from {low} to {high}")
        return value

    return read


def number(low: float, high: float) -> Callable[[str], float]:
    def read(raw: str) -> float:
        try:
            value = float(raw.strip())
        except ValueError:
            raise Refused(f"a number from {low:g} to {high:g}") from None
        if not low <= value <= high:  # also refuses nan
            raise Refused(f"a number from {low:g} to {high:g}")
        return value

    return read


def one_of(*allowed: str) -> Callable[[str], str]:
    def read(raw: str) -> str:
        value = raw.strip()
        if value.upper() not in allowed:
            raise Refused("one of " + ", ".join(allowed))
        return value.upper()

    return read


def word_of(*allowed: str) -> Callable[[str], str]:
    def read(raw: str) -> str:
        value = raw.strip().lower()
        if value not in allowed:
            raise Refused("one of " + ", ".join(allowed))
        return value

    return read


def web_address(raw: str) -> str:
    value = raw.strip()
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise Refused("an address that begins with http:// or https://")
    if parts.username or parts.password:
        raise Refused("an address without a user or password in it")
    return value


def names(raw: str) -> list[str]:
    """Comma-separated names."""
    return [part.strip() for part in raw.split(",") if part.strip()]


def tool_rules(raw: str) -> list[str]:
    """Comma-separated tool rules; a comma inside parentheses belongs to its rule."""
    rules, depth, current = [], 0, ""
    for character in raw:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            raise Refused("tool rules like Read,Bash(docker ps *) with balanced parentheses")
        if character == "," and depth == 0:
            rules.append(current)
            current = ""
        else:
            current += character
    if depth:
        raise Refused("tool rules like Read,Bash(docker ps *) with balanced parentheses")
    rules.append(current)
    return [rule.strip() for rule in rules if rule.strip()]


def folder(raw: str) -> Path:
    if not raw.strip():
        raise Refused("the path of a folder")
    path = Path(raw.strip()).expanduser()
    path = path if path.is_absolute() else BASE_DIR / path
    if path.exists() and not path.is_dir():
        raise Refused("the path of a folder (this is a file)")
    return path
