"""The argument of a command that states a limit of agent files: NAME=N, or NAME=default."""

from __future__ import annotations

from argparse import ArgumentTypeError

from memories.models.project import FILE_LIMITS

DEFAULT = "default"
ALLOWED = ", ".join(f"{name} {least} to {most}" for name, (_, least, most) in FILE_LIMITS.items())


def limit(text: str) -> tuple[str, int | str]:
    """Parse NAME=N or NAME=default."""
    name, _, number = text.partition("=")
    if name not in FILE_LIMITS:
        raise ArgumentTypeError(f"{name!r} is no limit; allowed are {', '.join(FILE_LIMITS)}")
    if number == DEFAULT:
        return name, number
    if not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise ArgumentTypeError(f"{text!r} is no NAME=N; examples: kilobytes=16, items=default")
    return name, int(number)
