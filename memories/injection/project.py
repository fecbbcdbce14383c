"""Choose the memories of a project for a session's prompt, and say why. `select` is the door; it reads only.

The SQL repeats the conditions of the partial index memories_project_rank literally: otherwise SQLite does not use it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q

from memories.injection import tag_index
from memories.injection.ops import below_threshold, held, inactive
from memories.injection.project_rank import Candidate, choose
from memories.injection.selector import NOTHING, TOLD_ONCE, Texts
from memories.injection.tags import Subject, matched, matches
from memories.injection.windows import usable, windows_at
from memories.models import Memory, Project
from memories.models.memory import ANY_AGENT
from memories.models.trust import kept_back, kept_back_sql
from memories.taxonomy import DEFAULT_RELEVANCE, PROJECT

NAMED = 20
"""Memories left out for one reason that a receipt names; its counts include all."""
FEW = 2000
"""Up to this many memories with a matching tag are read; of more, the best are found in the order of the rank."""
CHUNK = 500
COUNTED = 200_000
"""Memories that are counted, whatever a project has."""

RANK = f"(confidence * COALESCE(relevance_score, {DEFAULT_RELEVANCE}))"
# No rank is negative; with this range SQLite takes the index of the rank, not that of the confidence.
SURE = (
    f"taxonomy = 'project' AND active AND verdict = 'allow' AND confidence >= {PROJECT.injected_from} AND {RANK} >= 0"
)
OF_PROJECT, OF_ALL = "memories.project_id = %(project)s", "memories.project_id IS NULL"
"""Whose memories are read: the project's own, and those of all projects. Each is a range of the index of its own."""
USABLE = "taxonomy = 'project' AND active AND verdict = 'allow'"
LASTS = "(expires_at IS NULL OR expires_at > %(at)s)"
BY_RANK = "surface = ''"
"""Those without a window of time: their window decides, not their rank."""
BY_CONFIDENCE = "confidence DESC, id"
BEST_FIRST = f"{RANK} DESC, created_at, id"


@dataclass(frozen=True, slots=True)
class Selection:
    """The memories of a project for one prompt: the text below the heading "Memories", and the record of it.

    `budget` and `tokens` are in tokens (characters / 4), `limit` is in memories. `included` and `left_out` are entries
    as in a receipt, with `taxonomy` and `score`. `counts` has eligible, matched (of those read), included, no_room,
    outside_window, expired, unconfirmed, below_threshold, inactive and held.
    """

    text: str = ""
    tokens: int = 0
    budget: int = 0
    limit: int = 0
    included: Sequence[dict[str, Any]] = ()
    left_out: Sequence[dict[str, Any]] = ()
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, Any]:
        """Return what the receipt keeps beside the entries; empty without a project."""
        if not self.counts:
            return {}
        return {name: getattr(self, name) for name in ("text", "tokens", "budget", "limit", "counts")}


def select(project: Project | None, subject: Subject, *, at: datetime, told: Texts = NOTHING) -> Selection:
    """Choose among the memories of the taxonomy `project`, the project's own and those of all projects.

    They are active and not expired at `at` (aware UTC). What the prompt has `told` already is left out.
    """
    if project is None:
        return Selection()
    limit, budget = project.memories_in_prompt, project.memory_budget
    params = {"project": project.pk, "at": connection.ops.adapt_datetimefield_value(at)}
    most = limit + NAMED
    rows: dict[int, Memory] = {}
    own = _usable(OF_PROJECT, params)
    of_all = _usable(OF_ALL, params)
    counts = {name: own[name] + of_all[name] for name in own} | _ineligible(params, sum(own.values()))
    for whose, tagged in ((OF_PROJECT, project.pk), (OF_ALL, tag_index.ALL_PROJECTS)):
        top_rows = [*_matching(whose, tagged, subject, params, most), *_best(whose, params, most)]
        rows |= {row.pk: row for row in top_rows}
    lasting = usable(project.pk, ANY_AGENT).filter(Q(expires_at=None) | Q(expires_at__gt=at), taxonomy=PROJECT.slug)
    windows = windows_at(lasting, at)
    shut = [one for one in windows if not one.is_open]
    told_now = [_candidate(one.memory, subject, one.reason) for one in windows if one.is_open]
    by_rank = [_candidate(row, subject) for row in rows.values()]
    chosen = choose([*told_now, *by_rank], limit=limit, budget=budget, told=told)
    counts["eligible"] = max(counts["eligible"] - len(shut) - len(chosen.again), len(chosen.included))
    counts |= {
        "matched": sum(bool(one.matched) for one in (*chosen.included, *chosen.left_out)),
        "included": len(chosen.included),
        "no_room": counts["eligible"] - len(chosen.included),
        "outside_window": len(shut),
    }
    return Selection(
        text=chosen.text,
        tokens=chosen.tokens,
        budget=budget,
        limit=limit,
        included=[one.entry(one.why) for one in chosen.included],
        left_out=[
            *(one.entry(chosen.why) for one in chosen.left_out[:NAMED]),
            *(one.entry(TOLD_ONCE) for one in chosen.again[:NAMED]),
            *(_entry(one.memory, one.reason) for one in shut[:NAMED]),
            *_others(params, counts),
        ],
        counts=counts,
    )


def _candidate(row: Memory, subject: Subject, window: str = "") -> Candidate:
    return Candidate(
        memory_id=row.pk,
        uuid=str(row.uuid),
        category=row.category,
        observation=row.observation,
        confidence=row.confidence,
        relevance=DEFAULT_RELEVANCE if row.relevance_score is None else row.relevance_score,
        made_at=row.created_at,
        matched=matched(row.tags if isinstance(row.tags, list) else (), subject),
        window=window,
    )


def _best(whose: str, params: dict[str, Any], most: int, also: str = "") -> list[Memory]:
    where = f"{whose} AND {SURE} AND {LASTS} AND {BY_RANK} AND NOT {kept_back_sql()} {also}"
    sql = f"SELECT * FROM memories WHERE {where} ORDER BY {BEST_FIRST} LIMIT {int(most)}"  # noqa: S608
    return list(Memory.objects.raw(sql, params))


def _matching(whose: str, tagged: int, subject: Subject, params: dict[str, Any], most: int) -> list[Memory]:
    """Return the best memories with a tag that matches; each of `tags` is a tag in the index below `tagged`."""
    tags = tag_index.plain_among(tagged, subject.words)
    tags += [tag for tag in tag_index.patterns(tagged) if matches(tag, subject)]
    if not tags:
        return []
    names = {f"tag{number}": tag for number, tag in enumerate(tags)}
    among = (
        f"FROM project_tags t WHERE t.project_id = {int(tagged)} "
        f"AND t.kind IN ({tag_index.PLAIN}, {tag_index.PATTERN}) "
        f"AND t.tag IN ({', '.join(f'%({name})s' for name in names)})"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT t.memory_id {among} LIMIT {FEW + 1}", {**params, **names})
        ids = sorted({row[0] for row in cursor.fetchall()})
        if len(ids) > FEW:
            return _best(
                whose, {**params, **names}, most, f"AND EXISTS (SELECT 1 {among} AND t.memory_id = memories.id)"
            )
        ranked = heapq.nsmallest(most, _ranked(cursor, whose, ids, params))
    return list(Memory.objects.filter(pk__in=[row[-1] for row in ranked]))


def _ranked(cursor: Any, whose: str, ids: Sequence[int], params: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield (−rank, created_at, id) of the usable ones among `ids`."""
    for start in range(0, len(ids), CHUNK):
        part = ", ".join(map(str, ids[start : start + CHUNK]))
        cursor.execute(
            f"SELECT -{RANK}, created_at, id FROM memories WHERE id IN ({part}) AND {whose} "  # noqa: S608
            f"AND {SURE} AND {LASTS} AND {BY_RANK} AND NOT {kept_back_sql()}",
            params,
        )
        yield from cursor.fetchall()


def _usable(whose: str, params: dict[str, Any]) -> dict[str, int]:
    """Count the memories that are sure enough, each in one of the counts: the best COUNTED of them.

    The order holds SQLite to the index of the rank, also where the project is NULL.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*), count(*) FILTER (WHERE NOT {LASTS}), "  # noqa: S608
            f"count(*) FILTER (WHERE {LASTS} AND {kept_back_sql()}) FROM ("
            f"SELECT expires_at, provisional, confirmed_at FROM memories "
            f"WHERE {whose} AND {SURE} ORDER BY {BEST_FIRST} LIMIT {COUNTED}) AS memories",
            params,
        )
        sure, expired, unconfirmed = cursor.fetchone()
    return {"eligible": sure - expired - unconfirmed, "expired": expired, "unconfirmed": unconfirmed}


def _ineligible(params: dict[str, Any], sure: int) -> dict[str, int]:
    """Count the project's other memories from one index; `sure` are those that are sure enough.

    Those of all projects are not counted: they are among the memories of every project in the other indexes.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT active, verdict, count(*) FROM memories WHERE {OF_PROJECT} AND taxonomy = 'project' "  # noqa: S608
            "GROUP BY active, verdict",
            params,
        )
        by_state = {(bool(active), verdict): count for active, verdict, count in cursor.fetchall()}
    return {
        "below_threshold": max(0, by_state.get((True, "allow"), 0) - sure),
        "inactive": by_state.get((False, "allow"), 0),
        "held": by_state.get((True, "hold"), 0) + by_state.get((False, "hold"), 0),
    }


def _others(params: dict[str, Any], counts: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yield the first ineligible memories of each reason. The text of a held one is not copied: the gate held it."""
    if counts["expired"]:
        yield from (_entry(m, "expired") for m in _usable_first(f"NOT {LASTS}", params))
    if counts["unconfirmed"]:
        yield from (_entry(m, kept_back(m)) for m in _usable_first(f"{LASTS} AND {kept_back_sql()}", params))
    if counts["below_threshold"]:
        rows = _some(f"{OF_PROJECT} AND {USABLE} AND confidence < {PROJECT.injected_from}", BY_CONFIDENCE, params)
        yield from (_entry(m, below_threshold(m.confidence)) for m in rows)
    state = f"{OF_PROJECT} AND taxonomy = 'project' AND"
    if counts["inactive"]:
        rows = _some(f"{state} NOT active AND verdict = 'allow'", BY_CONFIDENCE, params)
        yield from (_entry(m, inactive(m.inactive_reason)) for m in rows)
    if counts["held"]:
        rows = _some(f"{state} active AND verdict = 'hold'", BY_CONFIDENCE, params)
        rows += _some(f"{state} NOT active AND verdict = 'hold'", BY_CONFIDENCE, params)
        yield from (_entry(m, held(m.verdict_reason)) | {"observation": ""} for m in rows[:NAMED])


def _usable_first(condition: str, params: dict[str, Any]) -> list[Memory]:
    """Return the first sure ones that meet `condition`: of the project, then of all projects."""
    rows = [
        row
        for whose in (OF_PROJECT, OF_ALL)
        for row in _some(f"{whose} AND {SURE} AND {condition}", BEST_FIRST, params)
    ]
    return rows[:NAMED]


def _some(where: str, order: str, params: dict[str, Any]) -> list[Memory]:
    sql = f"SELECT * FROM memories WHERE {where} ORDER BY {order} LIMIT {NAMED}"  # noqa: S608
    return list(Memory.objects.raw(sql, params))


def _entry(row: Memory, reason: str) -> dict[str, Any]:
    return _candidate(row, Subject()).entry(reason)
