"""Split a shell command into the simple commands that it runs. Pure.

It is no shell: what it takes apart wrongly has a name that no table holds, and counts as unknown.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

LONGEST = 20_000
"""Characters. A longer command is not parsed."""
DEEPEST = 6
"""Levels of substitutions."""
MOST_HEREDOCS = 20

_PLAIN = re.compile(r"[\w ./:=,@%+|;-]*")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n(?:(.*?)\n)??[ \t]*\2[ \t]*(?=\n|$)", re.DOTALL)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_BACKTICKS = re.compile(r"`([^`]*)`")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_OPERATORS = frozenset("();<>|&\n")
_REDIRECTIONS = frozenset({"<", ">", ">>", "<<<", "<>", ">&", "<&", "&>", "&>>", ">|"})
_OPENERS = frozenset({"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time"})
_SILENT = frozenset({"for", "done", "fi", "}", "esac", "case", "select", "function", "in"})


@dataclass(frozen=True, slots=True)
class Simple:
    """The words of one command, without assignments before it, and the files that are redirected into it."""

    words: tuple[str, ...]
    inputs: tuple[str, ...] = ()


def simple_commands(command: str, depth: int = 0) -> list[Simple] | None:
    """Return every simple command of `command`, those in substitutions included; None when it cannot be parsed."""
    if depth > DEEPEST or len(command) > LONGEST or command.count("<<") > MOST_HEREDOCS:
        return None
    if _PLAIN.fullmatch(command):  # most commands; ten times faster than the lexer
        parts = re.split("[|;]", command) if "|" in command or ";" in command else [command]
        return [simple for part in parts if (simple := _simple(part.split(), []))]
    bodies: list[str] = []
    text = _HEREDOC.sub(lambda match: _without_body(match, bodies), command.replace("\\\n", ""))
    text = _COMMENT.sub("", text)
    inner = [] if "`" not in command else _BACKTICKS.findall(command)
    for body in bodies:
        inner += _substitutions(body)
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    all_commands: list[Simple] = []
    try:
        for words, inputs in _split(list(lexer)):
            for word in (*words, *inputs):
                inner += _substitutions(word)
            if simple := _simple(words, inputs):
                all_commands.append(simple)
    except ValueError:  # a quotation mark or a bracket is open
        return None
    for part in inner:
        commands = simple_commands(part, depth + 1)
        if commands is None:
            return None
        all_commands += commands
    return all_commands


def _without_body(match: re.Match[str], bodies: list[str]) -> str:
    """Leave a here-document's first line; an unquoted body may hold substitutions."""
    if not match[1]:
        bodies.append(match[4] or "")
    return match[3]


def _split(tokens: list[str]) -> list[tuple[list[str], list[str]]]:
    """Split at operators; a word after a redirection belongs to no command."""
    parts: list[tuple[list[str], list[str]]] = []
    words: list[str] = []
    inputs: list[str] = []
    redirection = ""
    for token in tokens:
        if token and set(token) <= _OPERATORS:
            redirection = token if token in _REDIRECTIONS else ""
            if redirection:
                if words and words[-1].isdecimal():  # 2>&1
                    words.pop()
            else:
                parts.append((words, inputs))
                words, inputs = [], []
        elif redirection:
            if redirection in ("<", "<>"):
                inputs.append(token)
            redirection = ""
        else:
            words.append(token)
    return [*parts, (words, inputs)]


def _simple(words: list[str], inputs: list[str]) -> Simple | None:
    start = 0
    while start < len(words) and (words[start] in _OPENERS or _ASSIGNMENT.match(words[start])):
        start += 1
    rest = words[start:]
    if rest and rest[0] in _SILENT:
        rest = []
    return Simple(tuple(rest), tuple(inputs)) if rest or inputs else None


def _substitutions(word: str) -> list[str]:
    """Return the commands of `$(…)` in a word. Raises ValueError for an open bracket."""
    commands = []
    at = word.find("$(")
    while at >= 0:
        depth, end = 1, at + 2
        while depth:
            if end >= len(word):
                raise ValueError("an open bracket")
            depth += (word[end] == "(") - (word[end] == ")")
            end += 1
        inside = word[at + 2 : end - 1]
        if not inside.startswith("("):  # $((1 + 2)) is arithmetic
            commands.append(inside)
        at = word.find("$(", end)
    return commands


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
    remediations: list[tuple[str, str]] = []
    for words in _commands(command):
        for action, patterns in (("restart", RESTARTS), ("redeployment", REDEPLOYMENTS)):
            for pattern in patterns:
                if tuple(words[: len(pattern)]) == pattern:
                    remediations += [(action, name) for name in _services(words[len(pattern) :])]
    return list(dict.fromkeys(remediations))


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
