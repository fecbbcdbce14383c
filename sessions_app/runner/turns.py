"""Turn the lines of a log or a transcript into turns, in order from its first byte, and count what had been read. Pure.

Only what a person typed is a USER turn. A line may say that it is a person's and hold text of others: what the CLI, a
hook, a tool or a subagent wrote must never pass for it. It is a person's word for good only with a proof: the receipt
of our own hook for the prompt, which arrives before any tool runs, or the task of a session of ours. Without any
receipt for its session nothing in a transcript is proved, and all of it counts as outside text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.crypto import salted_hmac

from claudeops.lib.secrets import mask
from memories.capture.support import Evidence, is_prose
from memories.models import Transcript
from memories.observe.turns import Turn, TurnKind, without_private
from sessions_app.runner import accept, copied, stream
from sessions_app.runner.exposure import (
    MOST_CALLS,
    NAMES,
    UNREAD,
    Call,
    Judgement,
    Reading,
    Rules,
    depends,
    is_own_tool,
    judge,
    key_of,
    settled,
)
from sessions_app.runner.quoting import LONGEST_TEXT, shows_form

CLAIMED = "a transcript without a receipt"
"""The source of all that a transcript says for whose session no hook of ours was called."""
UNPROVED = "claims to be a person"
"""The source of what a line says that a person typed, without a receipt of that prompt."""
PASTED = "pasted text"
SUBAGENT = "subagent"
TASK = "task"
RECALL = "__recall"
"""How the name of the tool ends with which an agent recalls memories, whatever its server is called."""
BEFORE = "an earlier conversation"
"""The source of a summary of what is not in the file."""
LONGEST_NOTE = 2_000
"""Characters of a SYSTEM turn: nobody reads it, and some are long."""
CONTINUED = "This session is being continued from a previous conversation"

_REMINDER = re.compile(r"<system-reminder>.*(?:</system-reminder>|\Z)", re.DOTALL)
"""Greedy: text in a reminder may hold its end tag, and what follows that is not a person's."""
_PASTED = re.compile(r"<pasted_content\b[^>]{0,200}>(.*)(?:</pasted_content>|\Z)", re.DOTALL)
"""Greedy, for the same reason. The CLI marks so what was pasted: four lines or 1,400 characters."""
_TAGGED = re.compile(r"\s*<[a-z]+[-_][a-z_-]*[ >]")
"""How a text begins that the CLI or the editor wrote into a person's line: <command-name>, <ide_selection>, …"""
_NOT_TYPED = (
    *("isMeta", "isCompactSummary", "isVirtual", "isVisibleInTranscriptOnly", "isSynthetic", "textNotTyped"),
    *("handedOff", "verifiedSlackHumanTurn", "toolUseResult", "sourceToolUseID", "replacesSpan", "turnCompanion"),
)
_OUTSIDE_NOTES: Mapping[str, str] = {
    "mcp_resource": "mcp: resource",
    "poll_events": "tool: events",
    "queued_command": "tool: queue",
    "teammate_mailbox": "tool: mailbox",
}
"""Attachments that bring text from elsewhere before the model, and the name of that source."""
_FILES = ("filename", "path", "displayPath")


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool brought that later facts are compared with. `source` is empty for the house."""

    offset: int
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What our own hooks know of a session of the CLI: the hashes of the prompts that a person typed (`prompt_hash`).

    `is_kept`: a hook of ours was called in it, so that its transcript is no file that somebody made up.
    """

    prompts: frozenset[str] = frozenset()
    is_kept: bool = False


NO_PROOF = Proof()


def prompt_hash(prompt: str) -> str:
    """Return the hash by which a prompt is known again; with the installation's key, since prompts hold secrets."""
    return salted_hmac("claudeops.prompt", prompt.strip()).hexdigest()


@dataclass(slots=True)
class Reader:
    """Reads lines; `number` is that of the last turn. `ours`: nobody types into a session of ours.

    `proof` tells what in a transcript that is not ours counts. With `evidence`, what supports later statements is put
    into it.

    `spoke`: a person or the agent has said something. `sidechain`: whether all that was said so far is a subagent's;
    None before anything was said. `first_at` and `last_at` are UTC. `branch` is what was checked out in its folder,
    `origin` the folder from which it went into a worktree, `record` the last line's, by `copied.digest_of`.
    """

    table: Rules
    reading: Reading = field(default_factory=Reading)
    ours: bool = False
    proof: Proof = NO_PROOF
    evidence: Evidence | None = None
    number: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    spoke: bool = False
    sidechain: bool | None = None
    branch: str = ""
    origin: str = ""
    results: list[Result] = field(default_factory=list)
    recalled: list[str] = field(default_factory=list)
    record: int | None = None
    _names: dict[str, str] = field(default_factory=dict)
    _at: datetime | None = None
    _start: int = 0
    _end: int = 0

    def begin(self, task: str, sources: tuple[str, ...]) -> Turn | None:
        """Return the first turn of a session of ours: its task. From an outside source it is no person's word."""
        if self.evidence is not None:
            for source in sources:
                self.evidence.outside(0, "", source)
        if not task.strip():
            return None
        if sources:
            turn = self._turn(TurnKind.RESULT, task, TASK, sources[0], outside=True)
            self._weigh(turn, sources)
        else:
            turn = self._turn(TurnKind.USER, task)
            self._weigh(turn, is_proved=True)
        return turn

    def read(self, data: bytes | None, start: int, end: int) -> list[Turn]:
        """Return the turns of one line from byte `start` to `end`; None for one that is too long to read.

        Since the last call, `results` and `recalled` are what tools brought. Nothing is masked.
        """
        self._start, self._end = start, end
        self.results, self.recalled, self.record = [], [], None
        if data is None:
            self._missed()
            return []
        line = stream.parse(data, include_subagents=True)
        if line.unread:
            self._missed()
        if line.problem:
            return []
        self._at = line.at or self.last_at
        if line.at:
            self.first_at, self.last_at = self.first_at or line.at, line.at
        self._circumstances(line)
        raw = line.raw if line.type in ("user", "attachment", "worktree-state") else {}
        self.record = copied.digest_of(line.raw, Transcript)
        if raw and not self.reading.folder:  # the line of an attachment may come first
            self.reading.folder = accept.text(raw, "cwd", [])
        if raw:
            self.branch = self.branch or accept.text(raw, "gitBranch", [])
            self.origin = self.origin or accept.text(accept.mapping(raw, "worktreeSession", []), "originalCwd", [])
        turns = list(self._turns(line, raw))
        self.spoke = self.spoke or any(is_word(turn) for turn in turns)
        return turns

    def _circumstances(self, line: stream.Line) -> None:
        self.reading.folder = self.reading.folder or line.folder
        if line.subagent:
            self.reading.subagent_line(line.subagent)
        if line.denied:
            self.reading.denied(line.denied)

    def _turns(self, line: stream.Line, raw: Mapping[str, Any]) -> Iterator[Turn]:
        is_subagents = bool(raw.get("isSidechain") or raw.get("parent_tool_use_id"))
        if line.message:
            is_subagents = not line.message.main
        if line.type in stream.SPOKEN:
            self.sidechain = is_subagents if self.sidechain is None else self.sidechain and is_subagents
        for record in line.records:
            match record:
                case stream.Init():
                    self.reading.folder = record.folder or self.reading.folder
                case stream.Text():
                    yield from self._said(record, is_subagents)
                case stream.ToolUse():
                    yield self._called(record)
                case stream.ToolResult():
                    yield self._brought(record)
                case stream.Notice():
                    yield self._turn(TurnKind.SYSTEM, record.text, record.subtype)
        if line.type == "user":
            yield from self._user(raw, is_subagents)
        elif line.type == "attachment":
            yield from self._attached(raw)

    def _said(self, record: stream.Text, is_subagents: bool) -> Iterator[Turn]:
        if record.refused:
            yield self._turn(TurnKind.SYSTEM, record.text, record.refused)
        elif is_subagents:
            yield self._turn(TurnKind.RESULT, record.text, SUBAGENT)
        elif record.text.strip():
            turn = self._turn(TurnKind.AGENT, record.text)
            self._weigh(turn)
            yield turn

    def _called(self, record: stream.ToolUse) -> Turn:
        call = Call(record.id, record.name, record.input, record.paths)
        self.reading.call(record.id, judge(call, self.table, self.reading.folder))
        if key := key_of(record.id):
            self._names[key] = record.name
            if len(self._names) > MOST_CALLS:
                del self._names[next(iter(self._names))]
        if self.evidence is not None:
            self.evidence.call(*names_and_written(record))
        return self._turn(TurnKind.CALL, record.input, record.name)

    def _brought(self, record: stream.ToolResult) -> Turn:
        name = self._names.pop(key_of(record.id), "")
        sources = self.reading.waiting(record.id)
        judgement = self.reading.result(record.id, record.text, self._start)
        self._compared(judgement, record.text)
        if name.endswith(RECALL):
            self.recalled.append(record.text)
        turn = self._turn(
            TurnKind.RESULT, record.text, name, judgement[0] if judgement else "", outside=bool(judgement)
        )
        if sources is not None and not is_own_tool(name):  # a memory that is told back supports nothing
            self._weigh(turn, sources)
        return turn

    def _weigh(self, turn: Turn, sources: tuple[str, ...] = (), *, is_proved: bool = False) -> None:
        """Put a turn into the evidence, as what its voice is."""
        if self.evidence is None:
            return
        text = mask(without_private([turn]).texts[0])
        if turn.kind is TurnKind.AGENT:
            self.evidence.agent(turn.number, text)
        elif not (self.ours or self.proof.is_kept):
            self.evidence.outside(turn.number, text, CLAIMED)
        elif turn.kind is TurnKind.USER:
            if is_proved:
                self.evidence.person(turn.number, text)
            else:
                self.evidence.outside(turn.number, text, UNPROVED)
        elif not sources:
            self.evidence.house(turn.number, text)
        elif all(map(depends, sources)):
            names = all(source.startswith(NAMES) for source in sources)
            self.evidence.depends(turn.number, text, mask(sources[0]), names=names)
        else:
            self.evidence.outside(turn.number, text, mask(sources[0]))

    def _compared(self, judgement: Judgement, text: str) -> None:
        if judgement is not None and (judgement or shows_form(text)):
            self.results.append(Result(self._start, judgement[0] if judgement else "", text[:LONGEST_TEXT]))

    def _user(self, raw: Mapping[str, Any], is_subagents: bool) -> Iterator[Turn]:
        texts, has_result = _texts(raw)
        kind = self._kind_of_text(raw, is_subagents, has_result)
        for text in texts:
            if (kind is TurnKind.SYSTEM and text.startswith(CONTINUED)) or kind is TurnKind.SUMMARY:
                yield self._summary(text)
            elif kind is TurnKind.USER:
                yield from self._typed(text, raw)
            elif text.strip():
                yield self._turn(kind, text, SUBAGENT if kind is TurnKind.CALL else "")

    def _kind_of_text(self, raw: Mapping[str, Any], is_subagents: bool, has_result: bool) -> TurnKind:
        """Return what the text of a user's line is."""
        if is_subagents:
            return TurnKind.CALL
        if raw.get("isCompactSummary"):
            return TurnKind.SUMMARY
        if self.ours or has_result or any(raw.get(name) for name in _NOT_TYPED) or not _is_human(raw):
            return TurnKind.SYSTEM
        return TurnKind.USER

    def _typed(self, text: str, raw: Mapping[str, Any]) -> Iterator[Turn]:
        # A program gives its prompt by the option -p: such as another agent's shell.
        is_typed = raw.get("promptSource") != "sdk" and raw.get("turnOrigin", "human") == "human"
        is_proved = is_typed and bool(self.proof.prompts) and prompt_hash(text) in self.proof.prompts
        for pasted in _PASTED.findall(text):
            self.reading.add((PASTED,))
            turn = self._turn(TurnKind.RESULT, pasted, "", PASTED, outside=True)
            self._compared((PASTED,), pasted)
            self._weigh(turn, (PASTED,))
            yield turn
        text = _PASTED.sub("", text)
        rest = _REMINDER.sub("", text)
        if len(rest) < len(text):
            yield self._turn(TurnKind.SYSTEM, text)
        if not rest.strip():
            return
        is_automatic = rest.startswith((*stream.NO_PROMPTS, stream.INTERRUPTED)) or _TAGGED.match(rest)
        if rest.startswith(CONTINUED):
            yield self._summary(rest)
        else:
            turn = self._turn(TurnKind.SYSTEM if is_automatic else TurnKind.USER, rest.strip())
            if turn.kind is TurnKind.USER:
                self._weigh(turn, is_proved=is_proved)
            yield turn

    def _summary(self, text: str) -> Turn:
        turn = self._turn(TurnKind.SUMMARY, text)
        if not self.spoke:
            self.reading.missed(BEFORE)
            self._weigh(turn, (BEFORE,))
        return turn

    def _missed(self) -> None:
        self.reading.missed()
        if self.evidence is not None:
            self.evidence.outside(self.number, "", UNREAD)

    def _attached(self, raw: Mapping[str, Any]) -> Iterator[Turn]:
        """Yield what an attachment brought: a prompt that was typed while the agent worked, or a note of the CLI."""
        bad: accept.Bad = []
        attachment = accept.mapping(raw, "attachment", bad)
        kind = accept.text(attachment, "type", bad)
        if kind == "queued_command" and self._is_typed_later(attachment, raw):
            yield from self._typed(accept.as_text(attachment.get("prompt")), raw)
            return
        source = _OUTSIDE_NOTES.get(kind)
        for text in _flat(attachment.get("content") or attachment.get("prompt")):
            turn = self._turn(TurnKind.SYSTEM, text, kind)
            if source:
                self._weigh(turn, (source,))
            yield turn
        if source:
            self.reading.add((source,))
            if self.evidence is not None:
                self.evidence.outside(self.number, "", source)  # also when its text is not known
        elif kind == "file":
            paths = tuple(path for name in _FILES if (path := accept.text(attachment, name, bad)))
            text = accept.as_text(attachment.get("content"))
            sources = judge(Call("", "Read", "", paths), self.table, self.reading.folder)
            judgement = settled(sources, text)
            self.reading.add(judgement)
            self._compared(judgement, text)
            if sources is not None:
                self._weigh(self._turn(TurnKind.RESULT, text), sources)

    def _is_typed_later(self, attachment: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
        if self.ours or raw.get("isSidechain") or not isinstance(attachment.get("prompt"), str):
            return False
        is_automatic = any(attachment.get(name) or raw.get(name) for name in _NOT_TYPED)
        return not is_automatic and attachment.get("commandMode", "prompt") == "prompt" and _is_human(attachment)

    def _turn(self, kind: TurnKind, text: str, name: str = "", source: str = "", *, outside: bool = False) -> Turn:
        self.number += 1
        most = LONGEST_NOTE if kind is TurnKind.SYSTEM else LONGEST_TEXT
        return Turn(self.number, kind, text[:most], self._start, self._end, self._at, name, source, outside)


_WRITES = re.compile(
    r"\b(?:tee|echo|printf|mkdir|touch|mv|cp|ln|dd|rsync|patch|install|logger|useradd|usermod|groupadd|chfn|"
    r"git\s+(?:\S+\s+)?(?:commit|tag|branch|checkout|switch|config|merge|notes|stash|am|apply|remote|clone)|crontab\s+-\B|"
    r"kubectl\s+(?:annotate|label|create|apply|patch|edit|set|run|replace)|(?:docker|podman)\s+(?:rename|tag|run|create|"
    r"commit|build|volume|network|compose)|psql|mysql|sqlite3|mongosh?|redis-cli|sed\s+(?:-\w*i|--in-place)|"
    r"python3?\s+-c|perl\s+-\w*e|hostnamectl|nmcli|systemctl\s+(?:edit|set-\w+)|curl\b.*\s-(?:d|F|T|X|-data\S*|-json))\b|<<|>"
)
"""What in a command writes something somewhere, in scripts within scripts too: rather too much than too little."""
_NO_FILE = re.compile(
    r"\d?>&\d|[&\d]?>\s*/dev/null|\becho\s+[\"']?[\w=: -]{0,12}(?:\$[\w?{}]+)?[\"']?(?=\s*(?:[;&|\n)]|$))"
)
"""What writes nothing, or a word or two between outputs."""
_FIELDS = re.compile(r"\{\{?\s*((?:\.\w+)+)[^{}]*\}")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_READING = frozenset(("Glob", "Grep", "LS", "NotebookRead", "Read", "WebFetch", "WebSearch"))


def names_and_written(call: stream.ToolUse) -> tuple[str, str]:
    """Return (the names in a call that reads, what a call writes). Of a command its unquoted words are names.

    So are the fields of a format: docker inspect -f '{{.HostConfig.Privileged}}'.
    """
    if call.name in _READING:
        return call.input, ""
    if call.name == "Bash":
        if _WRITES.search(_NO_FILE.sub("", call.input)):
            return "", call.input
        sentences = [quoted for quoted in _QUOTED.findall(call.input) if is_prose(quoted)]
        fields = " ".join(_FIELDS.findall(call.input))
        return f"{_QUOTED.sub(' ', call.input)} {fields}", "\n".join(sentences)
    return "", accept.as_text(call.all)


def is_word(turn: Turn) -> bool:
    """Whether a person or the agent says something: without such a turn there is nothing to observe.

    A summary says again what was said before it.
    """
    return turn.kind in (TurnKind.USER, TurnKind.AGENT)


def _is_human(data: Mapping[str, Any]) -> bool:
    """Whether the CLI says that a person wrote it; older versions say nothing of the origin."""
    origin = data.get("origin")
    if isinstance(origin, dict) and origin.get("kind") != "human":
        return False
    return data.get("promptSource") != "system"


def _texts(raw: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the texts of a message, and whether it has the result of a tool."""
    message = raw.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [content], False
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [text for block in blocks if block.get("type") == "text" and isinstance(text := block.get("text"), str)]
    return texts, any(block.get("type") == "tool_result" for block in blocks)


def _flat(content: Any) -> list[str]:
    """Return the texts of a note: a string, or a list of strings; other content says nothing."""
    values = content if isinstance(content, list) else [content]
    return [value for value in values if isinstance(value, str) and value.strip()]
