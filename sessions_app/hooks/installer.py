"""Put our hooks into the text of the CLI's settings, find them there, and take them out again. Pure.

`uninstall(install(text, …)) == text`: byte for byte, when nobody changed the text in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from claudeops.lib import outside_json
from sessions_app.errors import InvalidSettings
from sessions_app.hooks.json_text import Node, append, is_made_around, parse, remove
from sessions_app.runner import start_command
from sessions_app.runner.agent_hooks import MARK, SETS

EMPTY = "{\n}\n"
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a hook stands, from the outermost container inwards: the members that lead to it, and their indexes."""

    path: tuple[tuple[Node, int], ...]
    found: Installed


def installed(text: str) -> list[Installed]:
    """Return our hooks in `text`. Raises InvalidSettings for a text that is no settings."""
    return [place.found for place in _places(_root(text))]


def install(text: str, groups: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """Add the entries (event, entry) as the last ones of their events. Raises InvalidSettings."""
    newline = "\r\n" if "\r\n" in text else "\n"
    found = _INDENT.search(text)
    unit = found[1] if found else "  "
    for event, group in groups:
        root = _root(text)
        hooks = root.last("hooks")
        events = hooks.node if hooks else None
        entries = events.last(event) if events else None
        value: Any = group
        if entries is not None:
            text = _appended(text, entries.node, "", value, 3, unit, newline)
        elif events is not None:
            text = _appended(text, events, event, [value], 2, unit, newline)
        else:
            text = _appended(text, root, "hooks", {event: [value]}, 1, unit, newline)
    _root(text)
    return text


def uninstall(text: str, names: Collection[str] = tuple(SETS)) -> str:
    """Take our hooks of the sets `names` out. Raises InvalidSettings, also where the rest would not stay as it is."""
    before = _root(text).value
    while places := [place for place in _places(_root(text)) if place.found.name in names]:
        text = _without(text, places[-1].path)
    if not _same(_root(text).value, before, names):
        raise InvalidSettings("The hooks stand between comments in a way that cannot be taken apart.", BY_HAND)
    return text


BY_HAND = f"Take them out by hand: the entries that name {MARK}."


def warnings(text: str) -> list[str]:
    """Say what in the settings keeps the CLI from calling the hooks."""
    root = _root(text)
    found = []
    try:
        outside_json.loads(text.removeprefix("\ufeff"))
    except ValueError:
        found.append("The file has comments or trailing commas; Claude Code 2.1 ignores such a file, and says nothing.")
    if root.value.get("disableAllHooks") is True:
        found.append("disableAllHooks is on in this file: no hook is called.")
    if isinstance(root.value.get("allowedHttpHookUrls"), list):
        found.append("allowedHttpHookUrls limits the addresses of hooks; ours must be among them.")
    return found


def _root(text: str) -> Node:
    """Parse a settings text. Raises InvalidSettings unless it has the form that the CLI reads."""
    try:
        root = parse(text)
    except ValueError as error:
        raise InvalidSettings(f"The settings are not JSON: {error}.") from error
    if not isinstance(root.value, dict):
        raise InvalidSettings("The settings are no JSON object.")
    hooks = root.value.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise InvalidSettings('"hooks" in the settings is no object of lists.')
    return root


def _places(root: Node) -> list[_Place]:
    """Return where our hooks stand, in the order of the text."""
    found = []
    for outer, member in enumerate(root.members):
        if member.name != "hooks" or not isinstance(member.node.value, dict):
            continue
        for middle, entries in enumerate(member.node.members):
            for inner, group in enumerate(entries.node.members):
                inside = group.node.last("hooks") if isinstance(group.node.value, dict) else None
                for index, hook in enumerate(inside.node.members if inside else ()):
                    if inside is not None and (ours := _ours(entries.name, hook.node.value)):
                        path = ((root, outer), (member.node, middle), (entries.node, inner), (inside.node, index))
                        found.append(_Place(path, ours))
    return found


def _ours(event: str, hook: Any) -> Installed | None:
    script = hook.get("command") if isinstance(hook, dict) else None
    if isinstance(script, str) and (found := start_command.read(script)):
        return Installed(found[0], event, found[1], found[2], fail_closed=False)
    headers = hook.get("headers") if isinstance(hook, dict) else None
    if not isinstance(headers, dict) or not isinstance(headers.get(MARK), str):
        return None
    token = str(headers.get("Authorization", "")).removeprefix("Bearer ")
    return Installed(headers[MARK], event, str(hook.get("url", "")), token, hook.get("onFailure") == "block")


def _without(text: str, path: tuple[tuple[Node, int], ...]) -> str:
    """Take out one hook, and the containers that were made for it."""
    *outer, (container, index) = path
    if len(container.members) == 1:  # an entry without hooks says nothing
        container, index = outer.pop()
        while outer and is_made_around(text, container):
            container, index = outer.pop()
    return remove(text, container, index)


def _appended(text: str, container: Node, key: str, value: Any, depth: int, unit: str, newline: str) -> str:
    lead = newline + depth * unit
    item = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", lead)
    return append(text, container, f"{json.dumps(key)}: {item}" if key else item, lead)


def _same(left: Any, right: Any, names: Collection[str]) -> bool:
    return _plain(left, names) == _plain(right, names)


def _plain(value: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return settings without our hooks and without what is empty then: for a comparison."""
    hooks: dict[str, list[Any]] = {}
    for event, entries in value.get("hooks", {}).items():
        kept = []
        for entry in entries:
            if isinstance(entry, dict) and isinstance(entry.get("hooks"), list):
                rest = [one for one in entry["hooks"] if not ((ours := _ours(event, one)) and ours.name in names)]
                if rest or not entry["hooks"]:
                    kept.append({**entry, "hooks": rest})
            else:
                kept.append(entry)
        if kept:
            hooks[event] = kept
    return {**value, "hooks": hooks}
