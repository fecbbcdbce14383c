"""Bring back from git what MEMORY.md holds when the database is lost: file, commits, proposals and memories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path

from django.conf import settings
from django.db import transaction

from claudeops.lib.domain_error import DomainError
from memories.curate import files
from memories.curate.document import SECTIONS, Entry, parse
from memories.curate.proposals import checked_text
from memories.curate.reading import UUID
from memories.curate.working_tree import NAME, OWN_FOLDER, find_spot, place_of
from memories.lifecycle import forgotten
from memories.lifecycle.lock import writing
from memories.lifecycle.write import Why
from memories.models import (
    CommitKind,
    Memory,
    MemoryFile,
    MemoryFileCommit,
    Project,
    Proposal,
    ProposalKind,
    ProposalState,
    Source,
    Trust,
    to_utc,
)
from memories.observe.categories import by_keywords
from memories.store import insert_all
from memories.taxonomy import KNOWLEDGE, TAXONOMY_VERSION

OTHER = "operations"
"""The category of an entry in a section of a person's own whose words tell none."""
TRAILER = re.compile(r"^(Proposal|Kind|Trust|Approved-by): (.+)$", re.MULTILINE)
SLUG = re.compile(r"[A-Za-z0-9_-]{1,64}")
CONFIDENCE = {Trust.OPERATOR: 1.0, Trust.SESSION: 0.8}
LOWEST_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was brought back from one file. `known` are entries that are memories already; `problem` why nothing was."""

    file: str
    commits: int = 0
    proposals: int = 0
    memories: int = 0
    known: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as it is stored: its category, its text, its time (UTC), and how far it can be trusted."""

    category: str
    text: str
    at: datetime
    trust: Trust


def rebuild(
    wanted: Project | None, *, everything: bool, by: str, at: datetime | None = None, dry_run: bool = False
) -> list[Rebuilt]:
    """Bring back the file of a project (None: the global one), or `everything` on this host, in one transaction.

    Projects that have a file in the data folder and no row are made, too. An entry that a person wrote is an
    operator's; one that claudeops committed is as trusted as its commit says, and as outside text where it says
    nothing. A second time, and what is known, changes nothing. With `dry_run` the database is left as it was.
    """
    when = to_utc(at)
    with transaction.atomic() if dry_run else nullcontext():
        if everything:
            for slug in lost_projects():
                Project.objects.create(slug=slug)
        results = [_rebuild(one, by, when) for one in (projects() if everything else [wanted])]
        if dry_run:
            transaction.set_rollback(True)
    return results


def projects() -> list[Project | None]:
    """Return what has a file on this host: the global scope first."""
    candidates: list[Project | None] = [None, *Project.objects.order_by("slug")]
    return [one for one in candidates if _is_there(one)]


def lost_projects() -> list[str]:
    """Return the slugs of projects that have a file in the data folder, and no row."""
    folder = Path(settings.CLAUDEOPS_DATA_DIR) / OWN_FOLDER / "projects"
    slugs = {path.parent.name for path in folder.glob(f"*/{NAME}") if SLUG.fullmatch(path.parent.name)}
    return sorted(slugs - set(Project.objects.values_list("slug", flat=True)))


def _rebuild(project: Project | None, by: str, at: datetime) -> Rebuilt:
    row = files.read(files.file_of(project), at=at)
    if row.problem:
        return Rebuilt(str(row), problem=row.problem)
    proposal_count, lines = _proposals(row, at), list(_lines(row, at))
    rows = Memory.objects.filter(taxonomy=KNOWLEDGE.slug, project=project)
    with writing():
        existing = {text.casefold() for text in rows.values_list("observation", flat=True)}
        existing |= {text.casefold() for text in forgotten.refusals(line.text for line in lines)}
        new = {line.text.casefold(): line for line in lines if line.text.casefold() not in existing}
        why = Why(by, at, "It stands in MEMORY.md.", {"channel": "import"})
        insert_all([_memory(line, project) for line in new.values()], why)
    return Rebuilt(str(row), row.commits.count(), proposal_count, len(new), len(lines) - len(new))


def _is_there(project: Project | None) -> bool:
    try:
        spot = find_spot(place_of(project))
    except DomainError:
        return True  # reading it says what is wrong
    return spot is not None and (spot.file.exists() or MemoryFile.objects.filter(project=project).exists())


def _proposals(row: MemoryFile, at: datetime) -> int:
    """Make the proposals that commits name, as promoted ones, and link the commits to them."""
    count = 0
    for commit in row.commits.filter(kind=CommitKind.PROMOTION, proposal=None).order_by("at", "pk"):
        trailers = dict(TRAILER.findall(commit.body))
        uuid = trailers.get("Proposal", "").strip()
        if not UUID.fullmatch(uuid):
            continue
        kind = trailers.get("Kind", "").strip()
        text = commit.subject.partition(": ")[2]
        section = next((slug for slug, title in SECTIONS.items() if f" {title}: " in commit.subject), OTHER)
        fields = {
            "key": f"git {uuid}",
            "file": row,
            "kind": kind if kind in ProposalKind.values else ProposalKind.ADD,
            "section": section,
            "text": "" if kind == ProposalKind.REMOVE else _full_text(row, text),
            "target": text if kind == ProposalKind.REMOVE else "",
            "state": ProposalState.PROMOTED,
            "trust": _trust(trailers.get("Trust", "")),
            "by": "import",
            "created_at": commit.at,
            "decided_at": commit.at,
            "decided_by": trailers.get("Approved-by", "")[:150],
            "why": "It was read from its commit.",
            "commit": commit.sha,
        }
        proposal, is_new = Proposal.objects.get_or_create(uuid=uuid, defaults=fields)
        MemoryFileCommit.objects.filter(pk=commit.pk).update(proposal=proposal)
        count += is_new
    return count


def _full_text(row: MemoryFile, subject: str) -> str:
    """Return the entry that a subject begins to say; a subject is cut."""
    begun = subject.removesuffix("…")
    return next((one.text for one in parse(row.text).entries if subject != begun and one.text.startswith(begun)), begun)


def _lines(row: MemoryFile, at: datetime) -> Iterator[Line]:
    commits = row.commits.in_bulk({pk for pk in row.blame if pk})
    for entry in parse(row.text).entries:
        pk = row.blame[entry.line] if entry.line < len(row.blame) else None
        commit = commits.get(pk) if pk else None
        try:
            text = checked_text(entry.text, OTHER)
        except DomainError:
            continue  # no sentence: a line of marks, or longer than an entry can be
        yield Line(_category(entry), text, _time(entry, commit, at), _trust_of(commit))


def _category(entry: Entry) -> str:
    if entry.section in SECTIONS:
        return entry.section
    category = by_keywords(entry.text)
    return category.slug if category else OTHER


def _time(entry: Entry, commit: MemoryFileCommit | None, at: datetime) -> datetime:
    """Return when the entry was written: its date's first minute, or its commit's time; never later than `at`."""
    moment = datetime.combine(entry.date, time(), UTC) if entry.date else None
    if commit and (moment is None or moment.date() == commit.at.date()):
        moment = commit.at
    return min(moment or at, at)


def _trust_of(commit: MemoryFileCommit | None) -> Trust:
    if commit is None or not commit.is_ours:
        return Trust.OPERATOR
    return _trust(dict(TRAILER.findall(commit.body)).get("Trust", ""))


def _trust(value: str) -> Trust:
    return Trust(value.strip()) if value.strip() in Trust.values else Trust.EXTERNAL


def _memory(line: Line, project: Project | None) -> Memory:
    is_person = line.trust == Trust.OPERATOR
    return Memory(
        taxonomy=KNOWLEDGE.slug,
        taxonomy_version=TAXONOMY_VERSION,
        project=project,
        category=line.category,
        observation=line.text,
        confidence=CONFIDENCE.get(line.trust, LOWEST_CONFIDENCE),
        tier=0,
        source=Source.HUMAN if is_person else Source.LEARNING,
        trust=line.trust,
        created_at=line.at,
        updated_at=line.at,
    )
