"""Errors of a purge; a surface turns them into a message or an exit code."""

from __future__ import annotations

from claudeops.lib.cli import Refusal


class PurgeError(Refusal):
    pass
