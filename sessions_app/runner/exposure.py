"""Judge what a tool call brings before an agent, by the table `exposure.toml` and the settings. Pure.

The question is who can write the bytes that are shown, not which program ran. A judgement is None (nothing), or the
names of the sources; no name means the house: the state of the agent's own machines. Of some sources it depends on the
text (`settled`): what runs code, relays stored text or is not in the table shows a line with a sentence, which is from
outside, or names and numbers, which are the house's. An agent is honest until it has read outside text, so nothing here
has to withstand a command that hides itself on purpose.

An exposure begins with the result of a tool call: text that was said before it was said without it. It never shrinks.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from claudeops.lib.hosts import is_local, is_loopback
from memories.capture.support import is_prose
from memories.models import Exposure
from sessions_app.runner.quoting import shows_form
from sessions_app.runner.shell import Simple, simple_commands

Judgement = tuple[str, ...] | None

HOUSE: tuple[str, ...] = ()
HOUSE_RULE, OUTSIDE_RULE, DEPENDS_RULE = "house", "outside", "depends"
"""What a rule of the operator's counts as; the third goes by the text."""
SUBAGENT = "subagent"
NAMES = "names"
"""The kind of a source that shows names of files in a folder where others write, and nothing of what is in them."""
UNKNOWN_FILE = "file: unknown"
NOT_UNDERSTOOD = "command: not understood"
FILES, COMMITS = "repository: files", "repository: commits"
"""Text that whoever wrote into a repository, or a file that is no configuration, has said."""
BINARIES = frozenset(f"{root}/{name}" for root in ("", "/usr", "/usr/local") for name in ("bin", "sbin"))
DEEPEST = 4
"""Scripts in scripts: ssh HOST "bash -c '…'"."""
LONGEST_NAME = 40
LONGEST_ROW = 6
CACHED_LENGTH = 500

_TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("exposure.toml").read_text(encoding="utf-8"))
_UNFIT = re.compile(r"[^\w./@-]+")
_OUTPUT = re.compile(r"--output|-[sSfkLgqN46]*o")
_REPOSITORY = re.compile(r"(?:github|gitlab)[\w.-]*/([\w.-]+/[\w.-]+)")


@dataclass(slots=True)
class Call:
    """A tool call: `main` is its command, path, pattern, address or query, `paths` are the files that it names."""

    id: str
    name: str
    main: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The table with what settings add. `rows` maps words of a command to what they bring and the options needed."""

    rows: Mapping[tuple[str, ...], tuple[tuple[frozenset[str], str], ...]]
    servers: frozenset[str]
    tools: Mapping[str, str]
    shared: tuple[str, ...]
    own: tuple[str, ...] = ()
    trusts_repository: bool = False


@cache
def rules(added: tuple[tuple[str, str], ...] = (), *, trusts_repository: bool = False) -> Rules:
    """Return the table with what is `added`: (tool rule, what it counts as), as a `SourceRule` has them.

    A command that is added comes before the rows of the table. `trusts_repository`: all who write into the session's
    own repository are trusted, so that its text and its programs are the house's.
    """
    by_tool: dict[str, dict[str, list[str]]] = {}
    for pattern, counts_as in added:
        tool, _, inside = pattern.partition("(")
        by_tool.setdefault(tool, {}).setdefault(counts_as, []).append(inside.removesuffix(")"))
    own_commands, paths = by_tool.pop("Bash", {}), by_tool.pop("Read", {})
    lists = {kind: [*rows] for kind, rows in _TABLE["commands"].items()}
    lists |= {f"added {kind}": patterns for kind, patterns in own_commands.items()}
    rows: dict[tuple[str, ...], list[tuple[frozenset[str], str]]] = {}
    for kind, commands in lists.items():
        for command in commands:
            parts = command.split()
            words = tuple(part for part in parts if not part.startswith("-"))[:LONGEST_ROW]
            rows.setdefault(words, []).append((frozenset(part for part in parts if part.startswith("-")), kind))
    tools = {name: kind for kind in ("nothing", "files", "shell", "web", "subagents") for name in _TABLE["tools"][kind]}
    own = [name for name, kinds in by_tool.items() if HOUSE_RULE in kinds]
    return Rules(
        rows={words: tuple(sorted(entries, key=_first)) for words, entries in rows.items()},
        servers=frozenset([*_TABLE["tools"]["servers"], *(name.removeprefix("mcp__") for name in own)]),
        tools={**tools, **dict.fromkeys(by_tool, OUTSIDE_RULE), **dict.fromkeys(own, "house")},
        shared=(*_TABLE["paths"]["shared"], *map(posixpath.normpath, paths.get(OUTSIDE_RULE, ()))),
        own=(*_TABLE["paths"]["own"], *map(posixpath.normpath, paths.get(HOUSE_RULE, ()))),
        trusts_repository=trusts_repository,
    )


def _first(row: tuple[frozenset[str], str]) -> tuple[bool, bool, int]:
    options, kind = row
    return not kind.startswith("added"), kind != f"added {OUTSIDE_RULE}", -len(options)


def judge(call: Call, rules: Rules, folder: str = "") -> Judgement:
    """Judge one call; `folder` is the session's working folder, empty when it is unknown."""
    if call.name.startswith("mcp__"):
        server = call.name.removeprefix("mcp__").partition("__")[0]
        return HOUSE if server in rules.servers else (_named("mcp", server),)
    kind = rules.tools.get(call.name)
    if kind == "shell":
        cached = len(call.main) <= CACHED_LENGTH
        return (_cached if cached else judge_command)(call.main, rules, folder)
    if kind == "nothing":
        return None
    if kind == "house":
        return HOUSE
    if kind == "files":
        return _paths(call.paths or (".",), rules, folder)
    if kind == "web":
        return (_named("web", _host(call.main) or "search"),)
    if kind == "subagents":
        return (SUBAGENT,)
    return (_named("tool", call.name),)


def judge_command(command: str, rules: Rules, folder: str = "", depth: int = 0) -> tuple[str, ...]:
    """Judge a shell command: the sources of all its parts."""
    commands = simple_commands(command) if depth <= DEEPEST else None
    if commands is None:
        return (NOT_UNDERSTOOD,)
    base = _entered(commands, rules)
    sources: dict[str, None] = {}
    for simple in commands[1:] if base else commands:
        inputs = [_in_folder(base, path) for path in simple.inputs]
        sources.update(dict.fromkeys(_paths(inputs, rules, folder)))
        sources.update(dict.fromkeys(_simple(simple, rules, folder, depth, base)))
    return tuple(sources)


def _entered(commands: Sequence[Simple], rules: Rules) -> str:
    """Return the served folder that `cd` enters first and in which all else only reads named files or reports state.

    Its files are judged by their paths in it. Empty: the folder itself is judged, with all that it may hold.
    """
    words = [simple.words for simple in commands]
    if len(words) < 2 or len(words[0]) != 2 or words[0][0] != "cd" or not all(words):
        return ""
    if any(not _OPEN_ENDED.isdisjoint(word) for row in words for word in row):
        return ""
    folder = posixpath.normpath(words[0][1])
    if not any(_is_below(folder, place) for place in _SERVED):
        return ""
    for name, *arguments in words[1:]:
        kind, _ = _row(_Command(name, tuple(arguments), unknown=False), rules)
        is_reader = name in _READERS and not kind
        if name in _TABLE["wrappers"] or name in ("cd", "git") or not (is_reader or kind == "house"):
            return ""
    return folder


_cached = lru_cache(maxsize=1024)(judge_command)


def _simple(simple: Simple, rules: Rules, folder: str, depth: int, base: str) -> tuple[str, ...]:
    words, unknown = simple.words, False
    while words:
        name = _program(words[0])
        wrapper = _TABLE["wrappers"].get(name)
        if wrapper is None:
            return _command(_Command(name, words[1:], unknown), rules, folder, depth, base)
        unknown = unknown or wrapper.get("unknown", False)
        if option := wrapper.get("option"):
            return _script(name, words, option, rules, folder, depth)
        words = _wrapped(words[1:], wrapper)
        if wrapper.get("script"):
            sources = judge_command(" ".join(words), rules, folder, depth + 1) if words else ("command: " + name,)
            return tuple(sources)
    return HOUSE


def _script(name: str, words: Sequence[str], option: str, rules: Rules, folder: str, depth: int) -> tuple[str, ...]:
    """Judge `bash -c SCRIPT`; a script in a file is unknown."""
    for at, word in enumerate(words[1:], start=2):
        if word == option or (word.startswith("-") and not word.startswith("--") and word.endswith(option[1:])):
            return judge_command(words[at], rules, folder, depth + 1) if at < len(words) else HOUSE
    return (_named("command", name),)


def _wrapped(words: tuple[str, ...], wrapper: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command behind a wrapper's own options and words."""
    at, before, values = 0, wrapper.get("before", 0), wrapper.get("values", ())
    while at < len(words):
        if words[at].startswith("-") and len(words[at]) > 1:
            at += 2 if words[at] in values else 1
        elif "=" in words[at] and words[at].partition("=")[0].isidentifier():
            at += 1
        elif before:
            before, at = before - 1, at + 1
        else:
            break
    return words[at:]


def _program(word: str) -> str:
    """Return a program's name; with its path when that is no folder of the system's programs."""
    folder, slash, name = word.rpartition("/")
    return name if not slash or folder in BINARIES else word


@dataclass(slots=True)
class _Command:
    """A command without its wrappers. `plain` are its words without options, `named` the values that name a source.

    `unknown`: further arguments come from a pipe.
    """

    name: str
    arguments: tuple[str, ...]
    unknown: bool
    plain: tuple[str, ...] = ()
    named: str = ""
    options: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        plain, options, skip = [self.name], set(), False
        naming = _TABLE["names"].get(self.name, ())
        for place, word in enumerate(self.arguments):
            if skip:
                skip = False
            elif word.startswith("-") and len(word) > 1:
                option, equals, value = word.partition("=")
                options.add(option)
                following = self.arguments[place + 1 : place + 2]
                if option in naming:
                    self.named, skip = (value, False) if equals else ("".join(following), True)
                elif not equals:
                    skip = option in _TABLE["values"].get(" ".join(plain[:3]), ())
            else:
                plain.append(word)
        self.plain, self.options = tuple(plain), frozenset(options)


def _command(command: _Command, rules: Rules, folder: str, depth: int, base: str) -> tuple[str, ...]:
    kind, length = _row(command, rules)
    if kind.startswith("added"):
        kind = kind.removeprefix("added ")
        return HOUSE if kind == HOUSE_RULE else (_named("listed" if kind == OUTSIDE_RULE else "command", command.name),)
    if command.name in _READERS and kind in ("", "house"):
        if command.name == "git":
            if not kind or any(_is_foreign(word) for word in command.arguments):
                return ("commits: remote",) if kind else (_named("command", "git"),)
            outside = _paths((word for word in command.arguments if word.startswith(("/", "~"))), rules, folder)
            if outside := tuple(source for source in outside if source != FILES):
                return outside
            is_relayed = command.plain[1:2] and command.plain[1] in _RELAYED and not rules.trusts_repository
            return (COMMITS,) if is_relayed else HOUSE
        sources = _files(command, rules, folder, base)
        if command.name in _LISTING:
            return tuple(
                dict.fromkeys(f"{NAMES}: {source.partition(': ')[2]}" for source in sources if source != FILES)
            )
        return (UNKNOWN_FILE,) if command.unknown and not sources else sources
    if kind == "container" and (inner := _inside(command)):
        return judge_command(shlex.join(inner), rules, "", depth + 1)
    if kind == "house" or (kind == "runs" and rules.trusts_repository) or (kind == "web" and _is_silent(command)):
        return HOUSE
    if kind == "web" and (hosts := {_host(word) for word in command.arguments} - {""}) and all(map(is_local, hosts)):
        asks_state = all(_STATE.search(word) for word in command.arguments if _host(word))
        return HOUSE if asks_state and all(map(is_loopback, hosts)) else (_named("local", min(hosts)),)
    return (_source(command, kind, length),)


def _inside(command: _Command) -> tuple[str, ...]:
    """Return the command that `docker exec CONTAINER …` runs in a container; empty for another one."""
    if "exec" not in command.plain or len(command.plain) <= (place := command.plain.index("exec") + 1):
        return ()
    words = command.arguments[command.arguments.index(command.plain[place]) + 1 :]
    return words[1:] if words[:1] == ("--",) else words


def fits_itself(tool: str, counts_as: str) -> bool:
    """Whether a source rule counts for the very call that it names."""
    name, _, inside = tool.partition("(")
    inside = inside.removesuffix(")")
    added = rules(((tool, counts_as),))
    if name == "Bash":
        commands = simple_commands(inside) or []
        if len(commands) != 1 or not commands[0].words or commands[0].words[0] in _TABLE["wrappers"]:
            return False
        kind, _ = _row(_Command(commands[0].words[0], commands[0].words[1:], unknown=False), added)
        return kind == f"added {counts_as}" and not any(sign in inside for sign in "*?/")
    if name == "Read":
        return not any(sign in inside for sign in "*?")
    return not is_own_tool(f"{tool}__")


def settled(judgement: Judgement, text: str) -> Judgement:
    """Return what a result with `text` brought: of sources that depend on it nothing where no line is a sentence."""
    if not judgement or not all(map(depends, judgement)):
        return judgement
    return judgement if any(map(is_prose, text.split("\n"))) else HOUSE


def depends(source: str) -> bool:
    """Whether a source counts by the text that it brings: it runs code, relays what is stored, or is unknown."""
    if source == NOT_UNDERSTOOD:
        return False
    return source == UNKNOWN_FILE or source.partition(":")[0] in _TABLE["depends"]["kinds"]


def is_own_tool(name: str) -> bool:
    """Whether a tool is one of ours, which tells what is known already."""
    return name.startswith("mcp__") and name.removeprefix("mcp__").partition("__")[0] in _TABLE["tools"]["servers"]


def _is_silent(command: _Command) -> bool:
    """Whether `curl -o /dev/null …` asks one address and shows at most a status and times."""
    silent, words = _TABLE["silent"], command.arguments
    if command.name not in silent["commands"] or not command.options.isdisjoint(silent["loud"]):
        return False
    output = [
        at for at, word in enumerate(words) if _OUTPUT.fullmatch(word) and silent["into"] in words[at + 1 : at + 2]
    ]
    formats = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-w", "--write-out")]
    is_telling = any(part in one for one in formats for part in silent["telling"])
    return bool(output) and not is_telling and sum(bool(_host(word)) for word in words) == 1


def _row(command: _Command, rules: Rules) -> tuple[str, int]:
    """Return (what the longest row says, how many words it has); empty for none. Rows that are added come first."""
    lengths = range(min(LONGEST_ROW, len(command.plain)), 0, -1)
    rows = [
        (kind, length)
        for length in lengths
        for options, kind in rules.rows.get(command.plain[:length], ())
        if options <= command.options
    ]
    return next((row for row in rows if row[0].startswith("added")), rows[0] if rows else ("", 0))


def _source(command: _Command, kind: str, length: int) -> str:
    rest = command.plain[length:]
    if kind == "web":
        whole_first = sorted(rest, key=lambda word: "://" not in word)
        return _named("web", next((host for word in whole_first if (host := _host(word))), command.name))
    if kind == "issues":
        linked = (_REPOSITORY.search(word) for word in command.arguments)
        return _named("issues", command.named or next((match[1] for match in linked if match), command.name))
    if kind == "commits":
        return "commits: remote"
    if kind == "mail":
        return "mail"
    if kind in ("logs", "container"):
        return _named(kind, (command.named or next(iter(rest), command.name)).removesuffix(".service"))
    return _named("command", command.name.rpartition("/")[2] or command.name)


def _files(command: _Command, rules: Rules, folder: str, base: str) -> tuple[str, ...]:
    words = [word for word in command.arguments if not word.startswith("-")]
    if command.name in _SCRIPTED and not command.options & _PATTERN_OPTIONS:
        words = words[1:]
    words = [word if "/" in word or "." in word or "$" in word else f"./{word}" for word in words if _is_name(word)]
    words += [word.partition("=")[2] for word in command.arguments if word.startswith("-") and "=" in word]
    if not words and (command.name == "rg" or (command.name.endswith("grep") and command.options & _RECURSIVE)):
        words = ["."]
    if base:
        words = [_in_folder(base, word) for word in words or (["."] if command.name in _LISTING else [])]
    return _paths(words, rules, folder)


def _in_folder(folder: str, path: str) -> str:
    return path if path.startswith("~") else posixpath.join(folder, path)


def _is_name(word: str) -> bool:
    """Whether a word may name a file: a number, a sign or a single letter is the value of an option."""
    return len(word) > 1 and not word.lstrip("+").isdecimal() and any(map(str.isalnum, word))


def _paths(paths: Iterable[str], rules: Rules, folder: str) -> tuple[str, ...]:
    sources = {source: None for path in paths if (source := _path(path, rules, folder))}
    return tuple(sources)


def _path(path: str, rules: Rules, folder: str) -> str:
    """Return the source that a path is in; empty for a file of the house."""
    path = path.replace("${HOME}", "~").replace("$HOME", "~").replace("${PWD}", ".").replace("$PWD", ".")
    if path.startswith("$"):
        return UNKNOWN_FILE
    if "/" not in path and "." not in path:
        return "file: " + path.lower() if path.lower() in _FOLDERS else ""
    whole = posixpath.normpath(path)
    while whole.startswith("../"):
        whole = whole[3:] if whole[3:].startswith("../") else whole[2:]
    if source_name := next((place for place in rules.shared if _is_below(whole, place)), ""):
        return f"file: {source_name}"[: LONGEST_NAME + 6]
    is_configuration = whole.lower().endswith(_CONFIGURATION) or any(_is_below(whole, place) for place in rules.own)
    is_configuration = is_configuration or not _OWN_FOLDERS.isdisjoint(whole.split("/")[:-1])
    is_inside = folder.count("/") > 1 and _is_below(whole, folder)
    served = next((place for place in _SERVED if _is_below(whole, place)), "")
    if served and not (is_inside or is_configuration):
        return f"file: {served}"
    inside = whole[len(folder) :] if is_inside else whole
    if source_name := next((part for part in inside.lower().split("/") if part in _FOLDERS), ""):
        return f"file: {source_name}"
    if ending := next((one for one in _ENDINGS if whole.lower().endswith(one)), ""):
        return f"file: {ending}"
    is_own = is_configuration or (rules.trusts_repository and (is_inside or not whole.startswith(("/", "~"))))
    return "" if is_own else FILES


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder) and (len(path) == len(folder) or path[len(folder)] == "/" or folder == "/")


def _is_foreign(word: str) -> bool:
    return any(part in word for part in _TABLE["words"]["commits"])


def _host(text: str) -> str:
    """Return the host of an address; empty for a word that is none."""
    try:
        if "://" in text:
            return urlsplit(text).hostname or ""
        first = text.partition("/")[0].partition(":")[0]
        return first if first == "localhost" or re.fullmatch(r"[\w-]+(\.[\w-]+)*\.[A-Za-z0-9]{1,24}", first) else ""
    except ValueError:
        return ""


def _named(kind: str, name: str) -> str:
    """Return a source's name: short, one line, the same for the same source."""
    return f"{kind}: {_UNFIT.sub('_', name).strip('_')[:LONGEST_NAME].lower() or 'unnamed'}"


_OPEN_ENDED = frozenset("*?[{$`")
"""What a word may hold that names files which are not written out."""
_READERS = frozenset(_TABLE["readers"]["plain"])
_SCRIPTED = frozenset(_TABLE["readers"]["scripted"])
_PATTERN_OPTIONS, _RECURSIVE = (
    frozenset(("-e", "-f", "--regexp", "--file")),
    frozenset(("-r", "-R", "--recursive", "-rn")),
)
_LISTING = frozenset(_TABLE["readers"]["listing"])
_SERVED: tuple[str, ...] = tuple(_TABLE["paths"]["served"])
_FOLDERS = frozenset(_TABLE["paths"]["folders"])
_CONFIGURATION: tuple[str, ...] = tuple(_TABLE["paths"]["configuration"])
_OWN_FOLDERS = frozenset(_TABLE["paths"]["own_folders"])
_RELAYED = frozenset(_TABLE["words"]["relayed"])
_STATE = re.compile(_TABLE["words"]["state"])
_ENDINGS: tuple[str, ...] = tuple(_TABLE["paths"]["endings"])


MOST_SOURCES = 20
MORE = "more"
"""Stands for the sources after the first MOST_SOURCES."""
MOST_CALLS = 64
"""Calls that wait for their results; the oldest of more than these counts as read."""
MOST_RESULTS = 64
"""Outside results whose places are kept, the newest; older ones are hardly before the model any more."""
UNREAD = "unread lines"
UNKNOWN_CALL = "unknown call"
OWN = -1
"""Instead of a source: a result of the house that holds a marker, or the form of a learning."""


@dataclass(frozen=True, slots=True)
class Read:
    """What had been read when something was said. `results` are (offset of the line in the raw log, source)."""

    exposure: str = Exposure.NOTHING.value
    sources: tuple[str, ...] = ()
    results: tuple[tuple[int, str], ...] = ()


@dataclass(slots=True)
class Reading:
    """Accumulators. `calls` are the judgements of calls without a result yet, `results` are "offset:source's index"."""

    exposure: str = Exposure.NOTHING.value
    sources: list[str] = field(default_factory=list)
    calls: dict[str, list[str] | None] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    folder: str = ""

    def add(self, judgement: Iterable[str] | None) -> None:
        """Count what was read: None is nothing, no source is the house."""
        if judgement is None:
            return
        if self.exposure == Exposure.NOTHING:
            self.exposure = Exposure.HOUSE.value
        for source in judgement:
            self.exposure = Exposure.OUTSIDE.value
            if source not in self.sources and len(self.sources) <= MOST_SOURCES:
                self.sources.append(source if len(self.sources) < MOST_SOURCES else MORE)

    def missed(self, what: str = UNREAD) -> None:
        """Count text that could not be judged as outside text."""
        self.add((what,))

    def call(self, call_id: str, judgement: Judgement) -> None:
        """Note a call. One without an id counts at once: its result will not be known."""
        sources, call_id = None if judgement is None else list(judgement), key_of(call_id)
        if not call_id:
            self.add(sources)
            return
        if call_id in self.calls and self.calls[call_id] != sources:
            self.add(self.calls[call_id])
        self.calls[call_id] = sources
        if len(self.calls) > MOST_CALLS:
            self.add(self.calls.pop(next(iter(self.calls))))

    def denied(self, call_id: str) -> None:
        """Note that the CLI refused a call: its result is the CLI's own."""
        if (key := key_of(call_id)) in self.calls:
            self.calls[key] = None

    def subagent_line(self, call_id: str) -> None:
        """Note that a subagent's own lines are in the log: its answer tells no more than what these count."""
        if self.calls.get(key := key_of(call_id)) == [SUBAGENT]:
            self.calls[key] = None

    def result(self, call_id: str, text: str, offset: int) -> Judgement:
        """Count the result of a call, and return what it brought.

        Later statements are compared with one from outside, or that shows a form.
        """
        sources = self.calls.pop(key_of(call_id), [UNKNOWN_CALL])
        judgement = settled(None if sources is None else tuple(sources), text)
        self.add(judgement)
        if judgement is None or (not judgement and not shows_form(text)):
            return judgement
        source = judgement[0] if judgement else ""
        index = OWN if not judgement else self.sources.index(source if source in self.sources else MORE)
        place = f"{offset}:{index}"
        if place not in self.results[-1:]:
            self.results = [*self.results, place][-MOST_RESULTS:]
        return judgement

    def waiting(self, call_id: str) -> Judgement:
        """Return the judgement of a call that has no result yet."""
        sources = self.calls.get(key_of(call_id), [UNKNOWN_CALL])
        return None if sources is None else tuple(sources)

    def is_compared(self, offset: int) -> bool:
        """Whether statements are compared with the results of the line at `offset`, which was read last."""
        return bool(self.results) and self.results[-1].startswith(f"{offset}:")

    def read(self) -> Read:
        places = (place.split(":") for place in self.results)
        results = tuple((int(at), self.sources[int(index)] if index != str(OWN) else "") for at, index in places)
        return Read(self.exposure, tuple(self.sources), results)


@lru_cache(maxsize=256)  # a call and its result ask four times
def key_of(call_id: str) -> str:
    """Return a call's id as it is stored: short, whatever a log holds; empty for none."""
    return hashlib.blake2b(call_id.encode("utf-8", "replace"), digest_size=8).hexdigest() if call_id else ""


def begun(sources: Sequence[str], *, unread: bool) -> Reading:
    """Return the reading of a session whose task comes from `sources`; `unread`: a part of its log was not judged."""
    reading = Reading()
    if sources:
        reading.add(sources)
    if unread:
        reading.missed()
    return reading
