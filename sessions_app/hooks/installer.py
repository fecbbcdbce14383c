"""Put our hooks into the CLI's settings, find them there, and take them out again. Pure.

The settings are plain JSON, as the CLI reads them: order and indentation stay, and all that is not ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from claudeops.lib import outside_json
from sessions_app.errors import InvalidSettings
from sessions_app.runner import start_command
from sessions_app.runner.agent_hooks import MARK, SETS

EMPTY = "{}\n"
"""The text around the hooks in a file that was made for them."""

_INDENT = re.compile(r"\{[^\S\n]*\r?\n([ \t]+)\"")


@dataclass(frozen=True, slots=True)
class Installed:
    """One of our hooks in a settings text.

    `token` is the secret, `$NAME` of the variable that holds it, or the path of the file that does.
    """

    name: str
    event: str
    url: str
    token: str
    fail_closed: bool


def installed(text: str) -> list[Installed]:
    """Return our hooks in `text`. Raises InvalidSettings for a text that is no settings."""
    return [ours for event, entry in _entries(_settings(text)) for one in entry["hooks"] if (ours := _ours(event, one))]


def install(text: str, groups: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """Add the entries (event, entry) as the last ones of their events. Raises InvalidSettings."""
    settings = _settings(text)
    for event, group in groups:
        settings.setdefault("hooks", {}).setdefault(event, []).append(group)
    return _formatted(settings, text)


def uninstall(text: str, names: Collection[str] = tuple(SETS)) -> str:
    """Take our hooks of the sets `names` out, with what they alone were in. Raises InvalidSettings."""
    settings = _settings(text)
    hooks = settings.get("hooks", {})
    is_changed = False
    for event, entry in list(_entries(settings)):
        remaining = [one for one in entry["hooks"] if not ((ours := _ours(event, one)) and ours.name in names)]
        if len(remaining) == len(entry["hooks"]):
            continue
        is_changed, entry["hooks"] = True, remaining
        if not remaining:
            hooks[event] = [one for one in hooks[event] if one is not entry]
        if not hooks[event]:
            del hooks[event]
    if is_changed and not hooks:
        del settings["hooks"]
    return _formatted(settings, text) if is_changed else text


def warnings(text: str) -> list[str]:
    """Say what in the settings keeps the CLI from calling the hooks."""
    settings, messages = _settings(text), []
    if settings.get("disableAllHooks") is True:
        messages.append("disableAllHooks is on in this file: no hook is called.")
    if isinstance(settings.get("allowedHttpHookUrls"), list):
        messages.append("allowedHttpHookUrls limits the addresses of hooks; ours must be among them.")
    return messages


def _settings(text: str) -> dict[str, Any]:
    """Parse a settings text. Raises InvalidSettings unless it has the form that the CLI reads."""
    try:
        settings = outside_json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise InvalidSettings(
            f"The settings are not JSON: {error}.",
            "Take out comments and trailing commas, if there are any: Claude Code ignores such a file.",
        ) from error
    if not isinstance(settings, dict):
        raise InvalidSettings("The settings are no JSON object.")
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise InvalidSettings('"hooks" in the settings is no object of lists.')
    return settings


def _formatted(settings: dict[str, Any], like: str) -> str:
    """Write settings with the indentation, the line breaks and the beginning of the text that they were in."""
    indent = _INDENT.search(like)
    text = json.dumps(settings, indent=indent[1] if indent else 2, ensure_ascii=False)
    text = "\ufeff" * like.startswith("\ufeff") + text + "\n" * like.endswith("\n")
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _entries(settings: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the entries that hold hooks, each with its event, in the order of the text."""
    for event, entries in settings.get("hooks", {}).items():
        for entry in entries:
            if isinstance(entry, dict) and isinstance(entry.get("hooks"), list):
                yield event, entry


def _ours(event: str, hook: Any) -> Installed | None:
    script = hook.get("command") if isinstance(hook, dict) else None
    if isinstance(script, str) and (parts := start_command.read(script)):
        return Installed(parts[0], event, parts[1], parts[2], fail_closed=False)
    headers = hook.get("headers") if isinstance(hook, dict) else None
    if not isinstance(headers, dict) or not isinstance(headers.get(MARK), str):
        return None
    token = str(headers.get("Authorization", "")).removeprefix("Bearer ")
    return Installed(headers[MARK], event, str(hook.get("url", "")), token, hook.get("onFailure") == "block")
