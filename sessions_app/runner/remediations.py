"""Find the restarts and redeployments in a shell command, for the PreToolUse hook, by usual commands. Pure."""

from __future__ import annotations

import re
import shlex

_SEPARATORS = {";", "&&", "||", "|", "&"}
_PREFIXES = {"sudo", "env", "command", "nohup", "time"}
_NAME = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9_.@-]*$")

RESTARTS = (
    ("docker", "restart"),
    ("docker", "compose", "restart"),
    ("docker-compose", "restart"),
    ("podman", "restart"),
    ("systemctl", "restart"),
    ("systemctl", "try-restart"),
    ("systemctl", "reload-or-restart"),
    ("kubectl", "rollout", "restart"),
)
REDEPLOYMENTS = (
    ("docker", "compose", "up"),
    ("docker-compose", "up"),
    ("kubectl", "apply"),
    ("helm", "upgrade"),
    ("docker", "stack", "deploy"),
    ("ansible-playbook",),
)


def remediations_in(command: str) -> list[tuple[str, str]]:
    """Return (action, service) of every service that the command would restart or redeploy, in order, each once."""
    found: list[tuple[str, str]] = []
    for words in _commands(command):
        for action, patterns in (("restart", RESTARTS), ("redeployment", REDEPLOYMENTS)):
            for pattern in patterns:
                if tuple(words[: len(pattern)]) == pattern:
                    found += [(action, name) for name in _services(words[len(pattern) :])]
    return list(dict.fromkeys(found))


def _commands(command: str) -> list[list[str]]:
    try:
        lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # an unclosed quotation
        words = command.replace("'", " ").replace('"', " ").split()
    commands: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            commands.append([])
        elif not (not commands[-1] and (word in _PREFIXES or "=" in word)):
            commands[-1].append(word)
    return [_without_options(words) for words in commands if words]


def _without_options(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("-")]


def _services(words: list[str]) -> list[str]:
    names = []
    for word in words:
        name = word.rsplit("/", 1)[-1].removesuffix(".service")
        if _NAME.match(name):
            names.append(name.replace(".", "-").replace("@", "-"))
    return names
