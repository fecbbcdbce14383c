#!/usr/bin/env python
"""Django's command line for claudeops."""

import os
import sys

import memories  # which imports nothing of Django by itself


def damage_behind(error: Exception) -> str:
    """Say what is damaged when the database caused an error: any command may meet it first. "" otherwise."""
    from django.apps import apps

    if not apps.ready:
        return ""
    from claudeops.lib import sqlite_damage

    return sqlite_damage.behind(error)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "claudeops.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            f"Django could not be imported ({error}). Install what claudeops needs first:\n"
            "    pip install -r requirements.txt"
        ) from error
    memories.starting(to_recall=sys.argv[1:2] == ["mcp"] or sys.argv[1:3] == ["memory", "recall"])
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        raise SystemExit(f"claudeops cannot start: {error}") from None
    except Exception as error:
        if damage := damage_behind(error):
            raise SystemExit(damage) from None
        raise


if __name__ == "__main__":
    main()
