"""The base of the errors that a person or a program can correct. A surface makes a message, a 4xx or an exit code."""

from __future__ import annotations


class DomainError(Exception):
    """`code` is stable, the text is for people, `fix` says what to do.

    `fields` says by the name of a field what is wrong with it; `field` names the one that is.
    """

    code = "error"

    def __init__(self, message: str, fix: str = "", *, field: str = "") -> None:
        super().__init__(message)
        self.fix = fix
        self.fields: dict[str, str] = {field: message} if field else {}
