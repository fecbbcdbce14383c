"""Export and import memories as JSON Lines, one memory a line, identified by UUID.

Sessions and users are left out, projects matched by slug. An import is all or nothing; repeating it changes nothing.
Each row is signed: only what this installation exported, unchanged, keeps its source, verdict and confidence.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.dateparse import parse_datetime

from claudeops.lib import outside_json, times
from claudeops.lib.secrets import mask, mask_value
from memories.capture import fields
from memories.capture.gate import Judgement, judge
from memories.capture.reasons import Reason
from memories.capture.statement import Provenance, Statement
from memories.capture.text import fold
from memories.errors import InvalidMemory
from memories.lifecycle import forgotten, gate_decisions
from memories.lifecycle.lock import writing
from memories.lifecycle.rules import joined, provisional_reason
from memories.lifecycle.write import Why, json_value
from memories.models import Exposure, GateDecision, Inactive, Memory, Project, Source, Trust, Verdict, to_utc
from memories.models.memory import IMPORTED_FILE
from memories.store import insert_all
from memories.taxonomy import AGENT, DEFAULT_CONFIDENCE, TAXONOMIES, TAXONOMY_VERSION, Taxonomy

SIGNATURE_FIELD = "signature"
SALT = "memories.exchange.import_export"


def signature_of(entry: dict[str, Any]) -> str:
    """Return the HMAC-SHA256 (hexadecimal) of a row without its signature, by a key derived from SECRET_KEY.

    The row is signed as JSON with sorted keys and without spaces, so that its layout in the file does not matter.
    """
    rest = {name: value for name, value in entry.items() if name != SIGNATURE_FIELD}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return salted_hmac(SALT, canonical, algorithm="sha256").hexdigest()


def is_ours(entry: dict[str, Any]) -> bool:
    """Whether this installation signed the row, and nobody changed it since."""
    signature = entry.get(SIGNATURE_FIELD)
    return isinstance(signature, str) and constant_time_compare(signature, signature_of(entry))


FORMAT = 1
MOST_PROBLEMS = 20
MOST_SOURCES = 50
OUTSIDE_THERE = "outside text where it was exported"
FROM_ELSEWHERE = Provenance(Source.IMPORT, "import", exposure=Exposure.OUTSIDE, exposed_to=(IMPORTED_FILE,))
"""A row that this installation did not sign."""
BATCH = 500
READ = ("observation", "category", "service", "taxonomy", "agent", "confidence", "tier", "source", "tags", "surface")
STATE = ("active", "inactive_reason", "verdict", "verdict_reason", "persistent", "merged_count", "taxonomy_version")
TRUST = ("exposure", "exposed_to", "provisional", "trust")
TIMES = ("created_at", "updated_at", "expires_at", "approved_at", "decayed_until", "confirmed_at")


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the lines of a file, each counted once. `projects` are the slugs of projects that were created.

    `judged` counts those of `created` and `held` that had no valid signature and went through the gate as imports,
    `purged` those whose text a person had purged here: they are left out.
    """

    created: int = 0
    held: int = 0
    known: int = 0
    same_text: int = 0
    discarded: int = 0
    judged: int = 0
    purged: int = 0
    projects: tuple[str, ...] = ()


def export_lines(queryset: QuerySet[Memory]) -> Iterator[str]:
    """Stream one JSON object a memory, oldest first. The same memories give the same lines."""
    rows = queryset.select_related("project", "superseded_by").order_by("pk")
    for memory in rows.iterator(chunk_size=BATCH):
        entry: dict[str, Any] = {"format": FORMAT, "uuid": str(memory.uuid)}
        entry |= {name: mask_value(getattr(memory, name)) for name in READ}  # an earlier version masked nothing
        entry["project"] = memory.project.slug if memory.project else None
        entry |= {name: mask_value(getattr(memory, name)) for name in (*STATE, *TRUST)}
        entry |= {name: json_value(getattr(memory, name)) for name in TIMES}
        entry["superseded_by"] = str(memory.superseded_by.uuid) if memory.superseded_by else None
        yield json.dumps(entry | {SIGNATURE_FIELD: signature_of(entry)}, ensure_ascii=False)


def import_lines(
    lines: Iterable[str], *, by: str, at: datetime | None = None, reason: str = "", trust: bool = False
) -> Imported:
    """Store the memories of `lines` that are not known, by UUID or by an active memory's text in the same scope.

    A row that this installation signed is stored as it is; every other passes the gate, as an import with the
    confidence of its taxonomy. `trust` takes all rows as they are. Raises InvalidMemory for bad lines, and stores
    nothing.
    """
    why = Why(by, to_utc(at), reason or "Imported.", {"channel": "import"})
    parsed, judged = _parse(lines, why.at, trust=trust)
    with writing():
        existing = _Found(parsed, forgotten.refusals(memory.observation for memory, _, _ in parsed))
        fresh = [(memory, slug, into) for memory, slug, into in parsed if existing.is_new(memory, slug)]
        for memory, slug, _ in fresh:
            memory.project_id = existing.project_id(slug)
        insert_all([memory for memory, _, _ in fresh], why)
        _link(fresh)
        refused = [memory for memory, _, _ in fresh if memory.verdict == Verdict.HOLD] + existing.discards
        gate_decisions.note_all(
            _decision(memory, judged[memory.uuid], by, why.at) for memory in refused if memory.uuid in judged
        )
    return Imported(
        created=sum(memory.verdict == Verdict.ALLOW for memory, _, _ in fresh),
        held=sum(memory.verdict == Verdict.HOLD for memory, _, _ in fresh),
        known=existing.known,
        same_text=existing.same_text,
        discarded=existing.discarded,
        purged=existing.purged,
        judged=sum(memory.uuid in judged for memory, _, _ in fresh),
        projects=tuple(existing.made),
    )


Line = tuple[Memory, str | None, UUID | None]  # the memory, its project's slug, the UUID it was merged into


def _decision(memory: Memory, judgement: Judgement, by: str, at: datetime) -> GateDecision:
    """Return the row of what the gate said of a line, by the text that would be stored."""
    return gate_decisions.decision_of(
        judgement,
        channel="import",
        statement=Statement(memory.category, memory.observation, memory.service, memory.taxonomy),
        provenance=replace(FROM_ELSEWHERE, actor=by, project_id=memory.project_id, agent=memory.agent),
        memory=memory if memory.pk else None,
        at=at,
    )


class _Found:
    def __init__(self, parsed: list[Line], refusals: Collection[str]) -> None:
        self.known = self.same_text = self.discarded = self.purged = 0
        self.refusals = refusals
        self.discards: list[Memory] = []
        self.made: list[str] = []
        self.projects = dict(Project.objects.values_list("slug", "pk"))
        self.uuids: set[UUID] = set()
        wanted = [memory.uuid for memory, _, _ in parsed]
        for start in range(0, len(wanted), BATCH):
            some = Memory.objects.filter(uuid__in=wanted[start : start + BATCH])
            self.uuids.update(some.values_list("uuid", flat=True))
        columns = ("taxonomy", "project__slug", "agent", "service", "category", "observation")
        self.texts = {
            hash((*scope, text.lower())) for *scope, text in Memory.objects.active().values_list(*columns).iterator()
        }

    def is_new(self, memory: Memory, slug: str | None) -> bool:
        """Whether to store it; else counts the reason. Lines of one file can repeat each other."""
        scope = (memory.taxonomy, slug, memory.agent, memory.service, memory.category)
        text = hash((*scope, memory.observation.lower()))
        if memory.uuid in self.uuids:
            self.known += 1
        elif memory.observation in self.refusals:
            self.purged += 1
        elif memory.active and text in self.texts:
            self.same_text += 1
        elif memory.verdict == "discard":
            self.discarded += 1
            memory.project_id = self.projects.get(slug or "")
            self.discards.append(memory)
        else:
            self.uuids.add(memory.uuid)
            if memory.active:
                self.texts.add(text)
            return True
        return False

    def project_id(self, slug: str | None) -> int | None:
        if slug is None:
            return None
        if slug not in self.projects:
            self.projects[slug] = Project.objects.create(slug=slug).pk
            self.made.append(slug)
        return self.projects[slug]


def _link(fresh: list[Line]) -> None:
    links = {memory.uuid: into for memory, _, into in fresh if into}
    ids = dict(Memory.objects.filter(uuid__in=set(links.values())).values_list("uuid", "pk"))
    for uuid, into in links.items():
        if into in ids:
            Memory.objects.filter(uuid=uuid).update(superseded_by=ids[into])


def _parse(lines: Iterable[str], at: datetime, *, trust: bool) -> tuple[list[Line], dict[UUID, Judgement]]:
    """Return the memories of the lines, and by UUID what the gate said of those it judged. Raises InvalidMemory."""
    judged: dict[UUID, Judgement] = {}
    parsed: list[Line] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = _entry(line)
            parsed.append(_memory(entry, at))
            if not trust and not is_ours(entry):
                memory = parsed[-1][0]
                judged[memory.uuid] = _judge(memory, entry)
        except (InvalidMemory, ValueError, TypeError, KeyError) as error:
            what = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            problems.append(f"line {number}: {what}")
    if problems:
        shown = "\n".join(problems[:MOST_PROBLEMS])
        more = f"\nand {len(problems) - MOST_PROBLEMS:,} more" if len(problems) > MOST_PROBLEMS else ""
        raise InvalidMemory(f"Nothing was imported.\n{shown}{more}", "Correct or remove these lines, and import again.")
    return parsed, judged


def _entry(line: str) -> dict[str, Any]:
    entry = outside_json.loads(line)
    if not isinstance(entry, dict):
        raise ValueError("it is not a JSON object.")
    if entry.get("format", FORMAT) != FORMAT:
        raise ValueError(f"format is {entry['format']!r}; this version reads {FORMAT}.")
    return entry


def _judge(memory: Memory, entry: dict[str, Any]) -> Judgement:
    """Let the gate decide, and take nothing on trust: no person's word, no confidence, no exemption from decay.

    Returns what the gate says; a row that states its hold keeps that.
    """
    memory.source, memory.tier, memory.persistent = Source.IMPORT, 0, False
    memory.approved_at = memory.confirmed_at = None
    exposures = (memory.exposed_to or [OUTSIDE_THERE]) if memory.exposure == Exposure.OUTSIDE else []
    memory.exposure, memory.exposed_to = Exposure.OUTSIDE, [IMPORTED_FILE, *exposures]
    memory.trust = ""  # by its source and exposure, when it is stored
    memory.provisional = joined([memory.provisional, provisional_reason(str(entry["observation"]), FROM_ELSEWHERE)])
    memory.confidence = TAXONOMIES[memory.taxonomy].first_confidence.get(Source.IMPORT, DEFAULT_CONFIDENCE)
    if memory.verdict == Verdict.ALLOW:
        judgement = judge(str(entry["observation"]), memory.observation, taxonomy=memory.taxonomy)
        memory.verdict, memory.verdict_reason = judgement.verdict, judgement.reason[:500]
        return judgement
    return Judgement("hold", memory.verdict_reason or "held where it was exported", (Reason.HELD_BEFORE,))


def _memory(entry: dict[str, Any], at: datetime) -> Line:
    taxonomy = fields.checked_taxonomy(entry.get("taxonomy", "ops"))
    created = _time(entry, "created_at") or at
    memory = Memory(
        taxonomy=taxonomy.slug,
        taxonomy_version=_whole(entry, "taxonomy_version", TAXONOMY_VERSION),
        category=fields.checked_category(entry["category"], taxonomy),
        service=fields.checked_service(entry.get("service")),
        agent=_agent(entry, taxonomy),
        observation=fields.checked_observation(str(entry["observation"])),
        confidence=fields.checked_confidence(entry.get("confidence", 0.7)),
        active=_truth(entry, "active", True),
        inactive_reason=_one_of(entry, "inactive_reason", ("", *Inactive.values), ""),
        tier=_whole(entry, "tier", 0),
        source=_one_of(entry, "source", Source.values, Source.IMPORT),
        verdict=_one_of(entry, "verdict", Verdict.values, Verdict.ALLOW),
        verdict_reason=str(entry.get("verdict_reason") or "")[:500],
        tags=fields.checked_tags(entry.get("tags") or []),
        surface=fields.checked_surface(str(entry.get("surface") or ""), taxonomy),
        persistent=_truth(entry, "persistent", False),
        merged_count=_whole(entry, "merged_count", 0, most=2**31 - 1),
        created_at=created,
        updated_at=_time(entry, "updated_at") or created,
        expires_at=_time(entry, "expires_at"),
        approved_at=_time(entry, "approved_at"),
        decayed_until=_time(entry, "decayed_until"),
        confirmed_at=_time(entry, "confirmed_at") if "confirmed_at" in entry else _confirmed_before(entry, created),
        exposure=_one_of(entry, "exposure", Exposure.values, Exposure.NOTHING),
        exposed_to=_names(entry, "exposed_to"),
        provisional=str(entry.get("provisional") or "")[:200],
        trust=_one_of(entry, "trust", ("", *Trust.values), ""),
    )
    if entry.get("uuid"):
        memory.uuid = UUID(str(entry["uuid"]))
    into = UUID(str(entry["superseded_by"])) if entry.get("superseded_by") else None
    return memory, _name(entry, "project"), into


def _confirmed_before(entry: dict[str, Any], created: datetime) -> datetime | None:
    """Return when a row of an older export was confirmed: approved, or written by a person."""
    return _time(entry, "approved_at") or (created if entry.get("source") == Source.HUMAN else None)


def _time(entry: dict[str, Any], name: str) -> datetime | None:
    value = entry.get(name)
    if value is None:
        return None
    moment = parse_datetime(value) if isinstance(value, str) else None
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"{name} is {value!r}; allowed is a time like 2026-01-31T08:00:00+00:00.")
    if name == "expires_at":
        return fields.checked_end(moment)
    happened = times.happened(moment, timezone.now())
    if happened is None:
        raise ValueError(f"{name} is {value!r}; allowed is a time from {times.EARLIEST.year} to now.")
    return happened


def _whole(entry: dict[str, Any], name: str, default: int, most: int = 32_767) -> int:
    value = entry.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{name} is {value!r}; allowed is a whole number from 0 to {most}.")
    return value


def _truth(entry: dict[str, Any], name: str, default: bool) -> bool:
    value = entry.get(name, default)
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; allowed is true or false.")
    return value


def _one_of(entry: dict[str, Any], name: str, allowed: Iterable[str], default: str) -> str:
    value = entry.get(name, default)
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; allowed are {', '.join(filter(None, allowed))}.")
    return str(value)


def _names(entry: dict[str, Any], name: str) -> list[str]:
    value = entry.get(name) or []
    if not isinstance(value, list) or len(value) > MOST_SOURCES or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{name} is {value!r}; allowed is a list of up to {MOST_SOURCES} names.")
    return [fold(mask(one))[:80] for one in value]


def _agent(entry: dict[str, Any], taxonomy: Taxonomy) -> str | None:
    agent = entry.get("agent")
    if taxonomy == AGENT and isinstance(agent, str):  # of an older export, or of another program
        return fields.checked_agent(agent, taxonomy.slug)
    return _name(entry, "agent")


def _name(entry: dict[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if value is None or (isinstance(value, str) and fields.SERVICE.fullmatch(value)):
        return value
    raise ValueError(f"{name} is {value!r}; allowed is one word of letters, digits, dots, hyphens and underscores.")
