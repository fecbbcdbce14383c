"""Errors of a purge; a surface turns them into a message or an exit code."""

from __future__ import annotations


class PurgeError(Exception):
    """`code` is stable, the text is for a person, `fix` says what to do."""

    is_refusal = True

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.code, self.fix = code, fix
