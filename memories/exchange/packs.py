"""Memory packs: the approved memories of a project in one file, to carry them to another installation.

A pack carries its own SHA-256. That finds damage and careless edits; it proves no author, because whoever changes a
pack can compute the hash anew. So an import takes a pack as text from elsewhere: it passes the gate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID, uuid5

from django.db import transaction
from django.utils import timezone
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StrictBool, ValidationError

from claudeops.lib import outside_json, times
from claudeops.lib.diff import Piece, word_diff
from claudeops.lib.secrets import mask_value
from memories import store
from memories.capture import fields
from memories.capture.gate import Judgement, judge
from memories.capture.statement import Provenance, Statement
from memories.errors import InvalidMemory, TextHeld
from memories.lifecycle import forgotten, gate_decisions, verbs
from memories.lifecycle.lock import writing
from memories.lifecycle.rules import Lifetimes, provisional_reason
from memories.lifecycle.write import Why
from memories.models import Exposure, Memory, Project, Source, Verdict, to_utc
from memories.models.memory import IMPORTED_PACK
from memories.taxonomy import PROJECT, TAXONOMY_VERSION

FORMAT = "claudeops-memory-pack"
VERSION = 1
MOST = 10_000
"""Memories of a pack."""
LARGEST = 64 * 1024 * 1024
"""Bytes of a pack's file."""
COMPARED = ("observation", "category", "service", "tags", "persistent")
"""The columns in which a known memory can differ from the pack's. Its confidence is the target's own experience."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Text = Annotated[str, Field(max_length=fields.LONGEST_OBSERVATION)]
Moment = Annotated[AwareDatetime, Field(strict=False)]


class PackedMemory(_Strict):
    """One memory of a pack; its type is `category`, its confidence 0..1."""

    uuid: Annotated[UUID, Field(strict=False)]
    category: str
    observation: Text
    service: str | None = None
    confidence: float = Field(ge=0, le=1)
    tags: list[str] = []
    persistent: StrictBool = False
    approved_at: Moment
    created_at: Moment
    updated_at: Moment


class Policy(_Strict):
    """The rules under which the memories were kept, for the reader; the target's own rules apply after an import."""

    taxonomy: Literal["project"]
    taxonomy_version: int
    inactive_below: float
    injected_from: float
    expires_after_days: dict[str, int | None]


class Pack(_Strict):
    """A pack as it stands in the file. `sha256` (hexadecimal) is that of all else: JSON with sorted keys, no spaces."""

    format: Literal["claudeops-memory-pack"]
    version: int
    project: str
    name: str = ""
    description: str = ""
    policy: Policy
    memories: list[PackedMemory] = Field(max_length=MOST)
    sha256: str


@dataclass(frozen=True, slots=True)
class Edited:
    """A memory of the target that differs from the pack's: its id, the pack's memory, and the columns that differ."""

    memory_id: int
    packed: PackedMemory
    before: Mapping[str, Any]

    @property
    def text(self) -> list[Piece]:
        """The words that differ."""
        return word_diff(self.before.get("observation", self.packed.observation), self.packed.observation)


@dataclass(frozen=True, slots=True)
class Difference:
    """What an import would do, each memory of the pack in one list; `missing` are ids that the pack lacks (they stay).

    `conflicts` has, by the UUID of a new memory, the ids of active memories that it contradicts. `held` has the gate's
    reason by UUID: a new memory is stored for review, a changed one keeps its text; `judgements` has it whole. `purged`
    has why texts that a person had purged here are left out.
    """

    same: list[int] = field(default_factory=list)
    new: list[PackedMemory] = field(default_factory=list)
    changed: list[Edited] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    conflicts: dict[UUID, list[int]] = field(default_factory=dict)
    held: dict[UUID, str] = field(default_factory=dict)
    judgements: dict[UUID, Judgement] = field(default_factory=dict)
    purged: dict[UUID, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.new or self.changed)


@dataclass(frozen=True, slots=True)
class Applied:
    """Counts of an import. `left` kept their text, because the gate holds the pack's; `purged` were left out."""

    created: int
    held: int
    changed: int
    left: int
    same: int
    purged: int


def make_pack(project: Project) -> dict[str, Any]:
    """Return the pack of a project's approved, active memories, by UUID. Raises InvalidMemory beyond MOST."""
    rows = Memory.objects.active().allowed().filter(project=project, taxonomy=PROJECT.slug, approved_at__isnull=False)
    memories = list(rows.order_by("uuid")[: MOST + 1])
    if len(memories) > MOST:
        raise InvalidMemory(f"Project {project.slug} has more than {MOST:,} approved memories.", "Deactivate some.")
    lifetimes = {name: project.lifetime(name) for name in PROJECT.categories}
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "project": project.slug,
        "name": mask_value(project.name),
        "description": mask_value(project.description),
        "policy": {
            "taxonomy": PROJECT.slug,
            "taxonomy_version": TAXONOMY_VERSION,
            "inactive_below": PROJECT.inactive_below,
            "injected_from": PROJECT.injected_from,
            "expires_after_days": {name: lasts and lasts.days for name, lasts in lifetimes.items()},
        },
        "memories": [_packed(row) for row in memories],
    }
    return content | {"sha256": hash_of(content)}


def _packed(row: Memory) -> dict[str, Any]:
    plain = ("category", "observation", "service", "confidence", "tags", "persistent")
    moments = ("approved_at", "created_at", "updated_at")
    return (
        {"uuid": str(row.uuid)}
        | {name: mask_value(getattr(row, name)) for name in plain}
        | {name: times.in_utc(getattr(row, name)).isoformat() for name in moments}
    )


def hash_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hexadecimal) of a pack without its `sha256`."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def read_pack(text: str) -> Pack:
    """Parse a pack. Raises InvalidMemory, which says what is wrong and where."""
    again = "Export it again, and copy it whole."
    if len(text) > LARGEST:
        raise InvalidMemory(f"The pack is larger than {LARGEST // 1024**2} MB.", "It is not a pack of this program.")
    try:
        content = outside_json.loads(text)
    except ValueError as error:
        raise InvalidMemory(f"The pack is not whole or not JSON: {error}.", again) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidMemory(
            "The file is not a memory pack.", "Make one with: manage.py pack export --project SLUG FILE"
        )
    if content.get("version") != VERSION:
        raise InvalidMemory(
            f"The pack has version {content.get('version')!r}; this program reads {VERSION}.", "Use the same release."
        )
    try:
        whole = hash_of(content) == content.get("sha256")
    except ValueError:  # a lone surrogate
        whole = False
    if not whole:
        raise InvalidMemory("The pack was changed or damaged: its SHA-256 does not fit its content.", again)
    try:
        pack = Pack.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidMemory(f"The pack cannot be read: {place}: {first['msg']}.", again) from None
    _check(pack)
    return pack


def _check(pack: Pack) -> None:
    uuids: set[UUID] = set()
    for number, one in enumerate(pack.memories, start=1):
        try:
            fields.checked_category(one.category, PROJECT)
            fields.checked_observation(one.observation)
            fields.checked_service(one.service)
            fields.checked_tags(one.tags)
            for moment in (one.created_at, one.updated_at, one.approved_at):
                if times.happened(moment, timezone.now()) is None:
                    raise InvalidMemory(f"{moment} lies in the future or before {times.EARLIEST.year}.")
            if one.uuid in uuids:
                raise InvalidMemory(f"UUID {one.uuid} stands in it twice.")
        except InvalidMemory as error:
            raise InvalidMemory(f"Memory {number} of the pack: {error}", "Nothing was imported.") from None
        uuids.add(one.uuid)


def difference(pack: Pack, project: Project, *, relate: bool = True) -> Difference:
    """Compare a pack with the memories of `project`; without `relate` its `conflicts` stay empty."""
    mine = Memory.objects.filter(project=project, taxonomy=PROJECT.slug)
    by_uuid = _known_by_uuid(pack, project)
    by_text = {(row.category, row.observation.lower()): row.pk for row in mine.active().only("category", "observation")}
    diff = Difference()
    met: set[int] = set()
    texts = {one.uuid: fields.checked_observation(one.observation) for one in pack.memories}
    purged = forgotten.refusals(texts.values(), is_counted=False)
    for one in pack.memories:
        text, row = texts[one.uuid], by_uuid.get(one.uuid)
        if text in purged and (row is None or row.observation != text):
            diff.purged[one.uuid] = purged[text]
            met.update([row.pk] if row else [])
            continue
        twin = by_text.get((one.category, text.lower()))
        if row is not None:
            met.add(row.pk)
            before = {name: getattr(row, name) for name in COMPARED if getattr(row, name) != _value(one, name)}
            if before:
                diff.changed.append(Edited(row.pk, one, before))
            else:
                diff.same.append(row.pk)
        elif twin is not None:
            met.add(twin)
            diff.same.append(twin)
        else:
            diff.new.append(one)
            if relate and (opposed := _contradicted(one, project)):
                diff.conflicts[one.uuid] = opposed
        if (row is None and twin is None) or (row is not None and row.observation != text):
            judgement = judge(one.observation, text)
            if judgement.verdict != Verdict.ALLOW:
                diff.held[one.uuid] = judgement.reason or str(judgement.verdict)
                diff.judgements[one.uuid] = judgement
    approved = mine.active().allowed().filter(approved_at__isnull=False)
    diff.missing.extend(approved.exclude(pk__in=met).order_by("pk").values_list("pk", flat=True))
    return diff


def apply_pack(pack: Pack, project: Project, *, by: str, approve: bool = False, at: datetime | None = None) -> Applied:
    """Store what is new of a pack and change what differs, in one transaction; a second time changes nothing.

    What is new has the source import and the pack's confidence, and expires by the rules of `project`. With `approve`
    the operator `by` approves what the gate allows. Nothing is deleted or deactivated.
    """
    when = to_utc(at)
    there = Provenance(
        Source.IMPORT,
        by,
        project_id=project.pk,
        channel="pack",
        exposure=Exposure.OUTSIDE,
        exposed_to=(IMPORTED_PACK,),
    )
    why = Why(
        by, when, f"Imported from the pack of project {pack.project[:64]}.", {"channel": "pack", "pack": pack.sha256}
    )
    first = difference(pack, project, relate=False)
    prepared = {one.uuid: store.prepare(_statement(one), there) for one in first.new if one.uuid not in first.held}
    with writing():
        diff = difference(pack, project, relate=False)  # again under the lock: others may have written since
        refusals = changed = 0
        created: list[Memory] = []
        for edited in diff.changed:
            new = {name: _value(edited.packed, name) for name in edited.before}
            try:
                with transaction.atomic():
                    verbs.edit(edited.memory_id, by=by, at=when, reason=why.reason, provenance=there, **new)
                changed += 1
            except TextHeld:
                refusals += 1
        for one in diff.new:
            memory = store.insert(_new(one, project, there, when, diff.held.get(one.uuid, "")), why)
            created.append(memory)
            if one.uuid in diff.judgements:  # what it would discard is held, so that a pack arrives whole
                gate_decisions.note(
                    replace(diff.judgements[one.uuid], verdict="hold"),
                    channel=there.channel,
                    statement=_statement(one),
                    provenance=there,
                    memory=memory,
                    at=when,
                )
            if one.uuid in prepared:
                store.note_relations(memory, _statement(one), there, prepared[one.uuid], at=when)
        if approve:
            ids = [edited.memory_id for edited in diff.changed] + [row.pk for row in created] + diff.same
            for row in Memory.objects.active().allowed().filter(pk__in=ids, approved_at=None).order_by("pk"):
                verbs.approve(row.pk, by=by, at=when, reason=why.reason)
    held = sum(row.verdict == Verdict.HOLD for row in created)
    return Applied(len(created) - held, held, changed, refusals, len(diff.same), len(diff.purged))


def _known_by_uuid(pack: Pack, project: Project) -> dict[UUID, Memory]:
    """Return the memories of `project` by the pack's UUID: their own, or the one derived where that was taken."""
    derived = {uuid5(one.uuid, project.slug): one.uuid for one in pack.memories}
    wanted = [one.uuid for one in pack.memories] + list(derived)
    by_uuid: dict[UUID, Memory] = {}
    for start in range(0, len(wanted), 500):
        for row in Memory.objects.filter(project=project, uuid__in=wanted[start : start + 500]):
            by_uuid[derived.get(row.uuid, row.uuid)] = row
    return by_uuid


def _value(packed: PackedMemory, name: str) -> Any:
    """Return a column's value as it would be stored."""
    value = getattr(packed, name)
    if name == "observation":
        return fields.checked_observation(value)
    if name == "service":
        return fields.checked_service(value)
    return fields.checked_tags(value) if name == "tags" else value


def _statement(packed: PackedMemory) -> Statement:
    return Statement(
        packed.category, packed.observation, packed.service, PROJECT.slug, packed.confidence, tuple(packed.tags)
    )


def _contradicted(packed: PackedMemory, project: Project) -> list[int]:
    statement = _statement(packed)
    there = Provenance(Source.IMPORT, "", project_id=project.pk, channel="pack")
    return store.contradicted_by(statement, there)


def _new(packed: PackedMemory, project: Project, there: Provenance, at: datetime, held: str) -> Memory:
    exists = Memory.objects.filter(uuid=packed.uuid).exists()
    memory = Memory(
        uuid=uuid5(packed.uuid, project.slug) if exists else packed.uuid,
        taxonomy=PROJECT.slug,
        project=project,
        service=_value(packed, "service"),
        category=packed.category,
        observation=_value(packed, "observation"),
        tags=_value(packed, "tags"),
        confidence=fields.checked_confidence(packed.confidence),
        persistent=packed.persistent,
        tier=0,
        source=Source.IMPORT,
        verdict=Verdict.HOLD if held else Verdict.ALLOW,
        verdict_reason=held[:500],
        exposure=there.exposure,
        exposed_to=list(there.exposed_to),
        provisional=provisional_reason(packed.observation, there),
        created_at=at,
        updated_at=at,
    )
    memory.expires_at = Lifetimes().end(memory, at)
    return memory
