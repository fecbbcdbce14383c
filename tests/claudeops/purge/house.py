"""A house in which one text stands everywhere, and a look at whether a byte of it is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.utils import timezone

from memories.capture.support import Quote, Support, Voice
from memories.models import (
    AgentCapture,
    Disagreement,
    EmbeddingModel,
    Memory,
    MemoryChange,
    PartState,
    ProposalDecision,
    Recalled,
    RecallMark,
    Reflection,
    Source,
)
from memories.recall import keyword_index
from memories.store import Provenance, Statement, remember
from sessions_app.models import (
    HookReceipt,
    Injected,
    InjectionReceipt,
    LogEntry,
    Session,
    Status,
    UsedMemory,
)
from sessions_app.runner.launch import folder_of
from sessions_app.transcripts.files import digest
from tests.support.credentials import stored_bytes
from tests.support.factories import (
    EventFactory,
    FactFactory,
    GateDecisionFactory,
    MemoryFactory,
    MemoryFileFactory,
    PartFactory,
    ProjectFactory,
    ProposalEvidenceFactory,
    ProposalFactory,
    SegmentFactory,
    SessionFactory,
    TranscriptFactory,
)

TEXT = 'Müller\'s "vault" door code is kept under the blue – flower pot'
OTHER = "The proxy restarts every night at four"


def furnish() -> Memory:
    """Put the text wherever the program puts the text of a memory; return the memory that states it."""
    now = timezone.now()
    session = SessionFactory(status=Status.COMPLETED, prompt=f"Know:\n- {TEXT}\n- {OTHER}", prompt_sha256="a" * 64)
    other = MemoryFactory(observation=OTHER, support=_said(f"Do you know: {TEXT}?"))
    remember(Statement("behavior", TEXT, "vault"), Provenance(Source.RUN, "agent:smith", session.pk, channel="text"))
    memory = Memory.objects.get(observation=TEXT)
    quoting = MemoryFactory(observation=f"Somebody said: {TEXT}. Ask whether it holds.")
    MemoryChange.objects.create(
        memory=other, memory_uuid=other.uuid, kind="contradicted", at=now, evidence={"text": TEXT}, reason=f"“{TEXT}”"
    )
    Session.objects.filter(pk=session.pk).update(
        summary=f"Learned: {TEXT}", response=json.dumps({"memories": [{"value": TEXT}]}), structured={"m": [TEXT]}
    )
    included = [{"id": memory.pk, "observation": TEXT}, {"id": other.pk, "observation": OTHER}]
    InjectionReceipt.objects.create(
        session=session,
        text=f"- {TEXT}\n- {OTHER}",
        sha256="b" * 64,
        budget=10,
        tokens=5,
        included=included,
        curated={"text": TEXT},
    )
    HookReceipt.objects.create(
        cli_session_id="cli-1", event="SessionStart", text=TEXT, sha256="c" * 64, tokens=3, included=included[:1]
    )
    Injected.objects.create(session=session, memory_id=memory.pk)
    UsedMemory.objects.create(session=session, memory_id=memory.pk, how="named")
    Recalled.objects.create(query=TEXT.upper(), hits=[[memory.pk, 0.5]], surface="page", at=now)
    RecallMark.objects.create(query=TEXT, query_key="d" * 64, memory=other, vote="right")
    EventFactory(session=session, message=f"Found: {TEXT}")
    line = json.dumps({"command": f"echo {TEXT}"})
    for seq, text in enumerate((f"[MEMORY:behavior:vault] {TEXT}", line, f"{TEXT[:40]}\n… 99 more characters", OTHER)):
        LogEntry.objects.create(session=session, seq=seq, at=now, kind="text", text=text, offset=0)
    _observed(session, memory)
    _curated(memory, other)
    Disagreement.objects.create(
        older=other,
        newer=quoting,
        kind="contradiction",
        older_text=OTHER,
        newer_text=quoting.observation,
        evidence={"new": TEXT},
    )
    AgentCapture.objects.create(
        project=ProjectFactory(),
        agent="smith",
        origin="session:1",
        key="k",
        form="block",
        text=TEXT,
        outcome="captured",
        memory_id=memory.pk,
    )
    keyword_index.catch_up()
    _files(session)
    return memory


def _said(text: str) -> dict[str, object]:
    return Support(Voice.HOUSE, (Quote(3, text, "logs: door"),)).as_json()


def _observed(session: Session, memory: Memory) -> None:
    transcript = TranscriptFactory(session=session, host=settings.CLAUDEOPS_HOST)
    part = PartFactory(transcript=transcript, state=PartState.DONE, answer=f"<fact>{TEXT}</fact>")
    segment = SegmentFactory(transcript=transcript, part=part, narrative="Where the code of the door is was told.")
    FactFactory(segment=segment, text=TEXT, excerpt=f"user: {TEXT}", memory=memory, support=_said(TEXT))
    GateDecisionFactory(text=TEXT, words=f"because of “{TEXT[:60]}…”", memory=None)


def _curated(memory: Memory, other: Memory) -> None:
    file = MemoryFileFactory(text=f"# Memory\n\n## Operations\n- (2026-11-01) {TEXT}\n- (2026-11-02) {OTHER}\n")
    Reflection.objects.create(
        file=file, number=1, until=timezone.now(), text=f"1. {TEXT}", answer=f"<change>{TEXT}</change>"
    )
    alone = ProposalFactory(file=file, text="The code is below the pot with the flower", proposed_text=TEXT)
    ProposalEvidenceFactory(proposal=alone, memory=memory, text=TEXT)
    ProposalDecision.objects.create(proposal=alone, tier=1, verdict="review", by="system", before=TEXT)
    both = ProposalFactory(file=file, text="Two things that are known")
    ProposalEvidenceFactory(proposal=both, memory=memory, text=TEXT)
    ProposalEvidenceFactory(proposal=both, memory=other, text=OTHER)


def _files(session: Session) -> None:
    folder = folder_of(session)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "stdout-1.jsonl"
    lines = [{"text": TEXT}, {"input": json.dumps({"text": TEXT.replace(" ", "\n")})}, {"text": OTHER}]
    log.write_text(
        "".join(json.dumps(line, ensure_ascii=number % 2 == 0) + "\n" for number, line in enumerate(lines)),
        encoding="utf-8",
    )
    log.chmod(0o400)
    (folder / "prompt.md").write_text(f"Know:\n- {TEXT}\n", encoding="utf-8")
    broken = TEXT.replace(" is kept", "\n  is kept")
    (folder / "stderr.log").write_text(f"warning: {broken}\n", encoding="utf-8")
    Session.objects.filter(pk=session.pk).update(log_file=str(log.relative_to(settings.CLAUDEOPS_DATA_DIR)))
    transcript = session.transcripts.get()
    size = log.stat().st_size
    transcript.path, transcript.observed_to, transcript.prefix_sha256 = str(log), size, digest(log, size)
    transcript.save()


def forms(text: str = TEXT) -> list[bytes]:
    """The bytes by which a file or a dump would give the text away."""
    escaped = json.dumps(text)[1:-1]
    return [form.encode() for form in (text, text.lower(), text.upper(), escaped, json.dumps(escaped)[1:-1])]


def places_of(text: str = TEXT) -> list[str]:
    """Where a byte of the text stands: files of the data folder, and values of the database."""
    stored = stored_bytes()
    found = [place for place, data in stored.items() if any(form in data for form in forms(text))]
    return found + sorted(set(_values_with(text)))


def _values_with(text: str) -> list[str]:
    found = []
    for model in apps.get_models():
        for row in model._base_manager.values():
            value: Any = json.dumps(row, default=str, ensure_ascii=False)
            if any(form.decode() in value or json.dumps(form.decode())[1:-1] in value for form in forms(text)):
                found.append(model._meta.db_table)
    return found


def data_folder() -> Path:
    return Path(settings.CLAUDEOPS_DATA_DIR)


def embedding_state() -> list[str]:
    return list(EmbeddingModel.objects.values_list("state", flat=True)) if connection.vendor == "sqlite" else []
