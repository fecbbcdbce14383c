#!/usr/bin/env python
"""Django's command line for claudeops."""

import os
import sys

import memories  # which imports nothing of Django by itself


def outage_behind(error: Exception) -> str:
    """Say what outage is behind an error, and what to do: any command may meet it first. "" for other errors."""
    from django.apps import apps

    if not apps.ready:
        return ""
    from claudeops.lib import outage

    cause = outage.behind(error)
    return f"{cause.message}\n{cause.fix}" if cause else ""


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
        if message := outage_behind(error):
            raise SystemExit(message) from None
        raise


if __name__ == "__main__":
    main()
