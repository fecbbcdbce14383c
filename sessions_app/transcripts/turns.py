"""Read a transcript's file: the turns of one part, with what had been read by then. The file is the truth.

Nobody knows what the writers of a plain text had read: all of it counts as outside text.

A file is read from its first byte, because what a line means depends on those before it. Credentials are masked here,
before a text leaves this package.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from django.db.models import Q

from claudeops.lib.secrets import mask
from memories.capture.support import Evidence
from memories.models import ArrivedBy, Memory, Project, Transcript, TranscriptKind, TranscriptPart
from memories.observe.turns import PartTurns, Turn, TurnKind
from sessions_app.errors import RawLogOutside
from sessions_app.models import TASK_TEXT, HookReceipt, InjectionReceipt, Session
from sessions_app.receipts import told_to
from sessions_app.runner import quoting
from sessions_app.runner.copied import known_elsewhere
from sessions_app.runner.exposure import begun
from sessions_app.runner.ingest import proof_of, table_of
from sessions_app.runner.raw_log import RawLine, complete_lines, log_path
from sessions_app.runner.turns import CLAIMED, NO_PROOF, Proof, Reader, Result
from sessions_app.transcripts.files import digest, json_lines

SOURCE = "plain text"
LONGEST_PARAGRAPH = 8_000
"""Bytes; a longer one is cut at the end of a line."""

_SPEAKERS = (
    (TurnKind.USER, re.compile(r"(?:user|human|operator|you|me)[ \t]*:[ \t]*|[>❯][ \t]+", re.IGNORECASE)),
    (TurnKind.AGENT, re.compile(r"(?:assistant|claude|agent|ai)[ \t]*:[ \t]*|[⏺●][ \t]*", re.IGNORECASE)),
    (TurnKind.RESULT, re.compile(r"⎿[ \t]*")),
)


def turns_in(lines: Iterable[RawLine]) -> Iterator[Turn]:
    """Yield a turn for each paragraph. A speaker's turn goes on until the next speaker; before the first, a person's.

    A line that is too long to read is left out. Nothing is masked.
    """
    speaker = TurnKind.USER
    for number, (start, end, text) in enumerate(_paragraphs(lines), 1):
        kind, speech = _spoken(text)
        speaker = kind or speaker
        yield Turn(number, speaker, speech, start, end)


def _paragraphs(lines: Iterable[RawLine]) -> Iterator[tuple[int, int, str]]:
    held: list[bytes] = []
    start = end = size = 0
    for line in lines:
        data = line.data or b""
        blank = not data.strip()
        if held and (blank or size >= LONGEST_PARAGRAPH or _spoken(_text(data))[0]):
            yield start, end, _text(b"".join(held))
            held, size = [], 0
        if not blank:
            start = start if held else line.start
            held.append(data)
            size += len(data)
            end = line.end
    if held:
        yield start, end, _text(b"".join(held))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\x00", "\ufffd").strip()


def _spoken(text: str) -> tuple[TurnKind | None, str]:
    """Return who speaks at the beginning of a text, None when it does not say, and the text without that."""
    for kind, pattern in _SPEAKERS:
        if match := pattern.match(text):
            return kind, text[match.end() :]
    return None, text


EARLIER = 200_000
"""Characters of the results before a part with which its facts are compared: the newest."""
MOST_TOLD = 1_000
"""Memories of a session whose texts are looked up."""

GONE = "its file is gone"
DELETED = "its session was deleted"
CHANGED = "its file was changed: what was read of it is not there any more"
PARTS = ("project", "agent_file", "knowledge")
"""The parts of a receipt with a text of their own."""


def reader_of(
    session: Session | None, project: Project | None, proof: Proof = NO_PROOF, evidence: Evidence | None = None
) -> Reader:
    """Return a reader at the beginning of a transcript; `session` is its session of ours, `project` its project."""
    sources = tuple(session.exposed_before) if session else () if proof.is_kept else (CLAIMED,)
    return Reader(
        table=table_of(project),
        reading=begun(sources, unread=False),
        ours=session is not None,
        proof=proof,
        evidence=evidence,
    )


def read_turns(path: Path, kind: str, reader: Reader, *, final: bool = False) -> Iterator[tuple[int, list[Turn]]]:
    """Yield (the byte at which a line ends, its turns) for each complete line. Nothing is masked. Raises OSError."""
    if kind == TranscriptKind.TEXT:
        reader.reading.add((SOURCE,))
        for turn in turns_in(complete_lines(path, 0, final=True)):
            reader.number, reader.spoke = turn.number, True
            if reader.evidence is not None:
                reader.evidence.outside(turn.number, mask(turn.text), SOURCE)
            yield turn.end, [turn]
        return
    for raw, data in json_lines(path, final=final):
        yield raw.end, reader.read(data, raw.start, raw.end)


def turns_of(part: TranscriptPart) -> PartTurns:
    """Read a part again. `missing` says why it cannot be read: the file is gone, or is another one now."""
    transcript = part.transcript
    session = transcript.session
    if session is None and transcript.arrived_by == ArrivedBy.SESSION:
        return PartTurns(missing=DELETED)  # what its task came from is not known any more
    try:
        path = path_of(transcript)
    except RawLogOutside as error:
        return PartTurns(missing=str(error))
    if not path.is_file():
        return PartTurns(missing=GONE)
    if digest(path, transcript.observed_to) != transcript.prefix_sha256:
        return PartTurns(missing=CHANGED)
    evidence = Evidence()
    proof = NO_PROOF if session else proof_of(transcript.cli_session_id, path.resolve())
    reader = reader_of(session, transcript.project, proof, evidence)
    task = reader.begin(session.task_text, _task_sources(session)) if session else None
    turns = [task] if task and part.start == 0 else []
    earlier, recalled = _Newest(), list[str]()
    own: list[tuple[int | None, list[Turn]]] = []
    try:
        for end, record_turns in read_turns(path, transcript.kind, reader, final=True):
            if end > part.end:
                break
            recalled += reader.recalled
            if end > part.start:
                own.append((reader.record, record_turns))
            else:
                earlier.add(reader.results)
    except OSError as error:
        return PartTurns(missing=f"its file cannot be read: {error.strerror}")
    records = {record for record, _ in own if record is not None}
    others = known_elsewhere(transcript, records) if session is None else set()
    turns += [turn for record, record_turns in own if record not in others for turn in record_turns]
    read = reader.reading.read()
    texts, ids = _told(transcript, session)
    return PartTurns(
        turns=tuple(map(_masked, turns)),
        exposure=read.exposure,
        sources=tuple(map(mask, read.sources)),
        evidence=evidence,
        earlier_results=tuple((mask(one.source), mask(one.text)) for one in earlier.results),
        told=tuple(dict.fromkeys(filter(None, [*texts, *map(mask, recalled)]))),
        told_ids=ids,
    )


def repeats(text: str, texts: Sequence[tuple[str, str]]) -> str:
    """Say what `text` repeats of the `texts` (source, text) that were read; empty when it is the session's own.

    A text without a source is compared by its markers alone.
    """
    return quoting.repeated(text, _compared(tuple(texts)))


@lru_cache(maxsize=2)  # one part's facts are compared with the same texts
def _compared(texts: tuple[tuple[str, str], ...]) -> tuple[tuple[str, quoting.Text], ...]:
    return tuple((source, quoting.Text(text)) for source, text in texts)


def path_of(transcript: Transcript) -> Path:
    """Return where its file is on its host. Raises RawLogOutside for a session of ours with a wrong name of its log."""
    return log_path(transcript.session) if transcript.session else Path(transcript.path)


class _Newest:
    """Results of tools, the newest of at most EARLIER characters."""

    def __init__(self) -> None:
        self.results: deque[Result] = deque()
        self.size = 0

    def add(self, results: list[Result]) -> None:
        for one in results:
            self.results.append(one)
            self.size += len(one.text)
        while self.size > EARLIER and len(self.results) > 1:
            self.size -= len(self.results.popleft().text)


def _masked(turn: Turn) -> Turn:
    return replace(turn, text=mask(turn.text), name=mask(turn.name), source=mask(turn.source))


def _task_sources(session: Session) -> tuple[str, ...]:
    """Return the outside sources of a session's task; none for the words of a signed-in person."""
    before = tuple(session.exposed_before)
    return (TASK_TEXT, *before) if TASK_TEXT in before else ()


def _told(transcript: Transcript, session: Session | None) -> tuple[list[str], frozenset[int]]:
    """Return the texts that we put into a session, and the ids of the memories in them. Five queries at most."""
    texts: list[str] = []
    ids: set[int] = set()
    if session is not None:
        ids |= told_to(session.pk)
        receipt = InjectionReceipt.objects.filter(session=session).first()
        if receipt is not None:
            texts += [receipt.text, *(str(getattr(receipt, part).get("text", "")) for part in PARTS)]
    named = Q(session=session) if session else Q(pk__in=())
    if transcript.cli_session_id:
        named |= Q(cli_session_id=transcript.cli_session_id)
    for text, included in HookReceipt.objects.filter(named).values_list("text", "included"):
        texts.append(text)
        ids.update(entry["id"] for entry in included if isinstance(entry, dict) and isinstance(entry.get("id"), int))
    newest = sorted(ids, reverse=True)[:MOST_TOLD]
    texts += Memory.objects.filter(pk__in=newest).order_by("pk").values_list("observation", flat=True)
    return texts, frozenset(ids)
