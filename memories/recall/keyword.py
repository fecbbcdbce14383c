"""The words' side of a recall: which memories hold the query's rare terms, how much of it they cover.

Reads the index of `index.py`; what it reads is weighed in `weighing`. A common word alone never makes it read half
the table: terms are taken by how rare they are until the candidates are few enough, and common ones several at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from django.db import connection
from django.db.backends.utils import CursorWrapper

from memories import prepared
from memories.recall import frequency, history, index, scope
from memories.recall.terms import index_terms
from memories.recall.values import Filters
from memories.recall.weighing import BETWEEN, Ids, Words, by_mass

MOST_CANDIDATES = 800
"""Rows whose terms are read for one query. Past that the rarest terms decide, and the vectors carry the rest."""
ENOUGH = 50
"""When the rare terms found fewer within the scope, the common ones are looked for as well."""
SMALL_SCOPE = 4_000
"""A scope of at most so many rows is read whole then, unless all of its words stand in few places."""
MOST_POSTED = 5_000
"""When the common terms stand in no more places than these, all of them are looked at."""
TOGETHER = ((0, 1, 2), (0, 1), (0, 2), (1, 2), (0,))
"""Else which of the rarest of them are looked for together. Measured on generated sentences, 100,000 of them: the best
100 reach .90 of the score that all memories would give (the newest that hold any term: .84), the best 10 .98 (.975)."""
NEWEST = 250
"""So many of each, the newest."""
SPAN = 4
"""They are looked for among so many times the newest rows that should hold them, by chance."""
MOST_WALKED = 20_000
"""Places of these terms that are walked through for one set of them."""
MOST_READ = 300
"""Of all that were found so, those whose terms are read: they hold the most of the query."""
TAIL = 200
"""Memories not indexed yet that a recall reads itself, the newest first."""
MOST_KEPT = 10_000

_large: dict[tuple[str, scope.Where], float] = {}


def search(terms: Sequence[str], filters: Filters) -> Words:
    """The candidates of a query's terms within the filters' scope, those not indexed yet among them."""
    found = Words(tuple(terms))
    if not terms:
        return found
    found.collection = frequency.collection(frequency.MOMENT)
    found.frequency, tail = frequency.with_due(terms, found.collection.size, TAIL)
    rare = sorted((term for term in terms if found.frequency.get(term)), key=lambda t: (found.frequency[t], t))
    chosen = selective(rare, found.frequency)
    found.searched = tuple(chosen)
    visible = scope.of(filters)
    if chosen:
        found.outside = _read_holding(found, chosen, visible)
        cut = found.frequency[chosen[0]] > MOST_CANDIDATES  # then not all that hold the rarest one were read
        common = rare if cut else rare[len(chosen) :]
        if common and len(found.places) < ENOUGH:
            _read_common(found, common, visible)
    if tail:
        rows = scope.within(filters)
        texts = rows.filter(pk__in=tail).values_list("pk", *index.TEXTS)
        _read_texts(found, texts)
        found.unindexed = len(tail)
    if filters.as_of is not None:
        edited = scope.within(filters).filter(pk__in=history.edited_since(filters.as_of))
        then = history.as_of(edited, filters.as_of)
        _read_texts(found, ((row.pk, *(getattr(row, name) for name in index.TEXTS)) for row in then))
    found.weigh()
    return found


def read(found: Words, ids: Iterable[int], visible: scope.Where) -> None:
    """Put the terms of these memories into `found`, as far as they are indexed and visible."""
    wanted = sorted(set(ids) - found.places.keys())
    if wanted:
        _read_among(found, wanted, visible, len(wanted))


def selective(rare: Sequence[str], places: Mapping[str, int]) -> list[str]:
    """Of terms from rare to common, as many as keep the candidates few: the rarest one at least."""
    chosen: list[str] = []
    total = 0
    for term in rare:
        total += places[term]
        if chosen and total > MOST_CANDIDATES:
            break
        chosen.append(term)
    return chosen


def _read_texts(found: Words, rows: Iterable[tuple[Any, ...]]) -> None:
    """Put texts that are not in the index, or were not then, beside the others: (id, and what of it is indexed)."""
    new: dict[int, list[str]] = {}
    for pk, *texts in rows:
        terms = index_terms(index.text_of(*texts))
        there = set(found.terms).intersection(terms)
        if not found.drop(pk):
            found.collection = replace(found.collection, size=found.collection.size + 1)
            for term in there:
                found.frequency[term] = found.frequency.get(term, 0) + 1
        if there:
            new[pk] = terms
    found.take([(pk, len(terms), " ".join(terms)) for pk, terms in new.items()])


def _read_holding(found: Words, terms: Sequence[str], visible: scope.Where) -> int:
    """Read the newest MOST_CANDIDATES memories that hold any of the terms. Returns how many are not visible."""
    size = max(1, found.collection.size)
    share = min(1.0, sum(found.frequency[term] for term in terms) / size)
    walked = _walked(share, size, MOST_CANDIDATES)
    newest, wanted = _holding(terms, any_of=True, walked=walked)
    if connection.vendor == "postgresql":
        source = f"({newest.replace('SELECT memory_id', 'SELECT *')}) t"
    else:
        source = f"({newest}) f CROSS JOIN memory_terms t ON t.memory_id = f.memory_id"
    return _read_joined(found, source, [wanted, 0, MOST_CANDIDATES], visible, _cursor(walked))


def _read_common(found: Words, common: Sequence[str], visible: scope.Where) -> None:
    """Read what holds the most of these terms (each stands in many places), from rare to common."""
    few = sum(found.frequency[term] for term in common) <= MOST_POSTED
    if not few and (small := _small(visible, found.collection.size)):
        read(found, small, visible)
        return
    found.weigh_terms()
    sets = [(term,) for term in common] if few else _together(common)
    held = _posted(found, sets, MOST_POSTED if few else NEWEST)
    ids = [pk for pk in by_mass(held, found.idf).tolist() if pk not in found.places]
    if ids:
        _read_among(found, ids, visible, MOST_READ)


def _together(common: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(common[place] for place in places) for places in TOGETHER if max(places) < len(common)]


def _posted(found: Words, sets: Sequence[tuple[str, ...]], most: int) -> list[tuple[tuple[str, ...], Ids]]:
    """The newest memories that hold all of a set's terms, for each of the sets."""
    parts: list[str] = []
    params: list[str | int] = []
    joined = "string_agg(memory_id::text, ',')" if connection.vendor == "postgresql" else "group_concat(memory_id)"
    size, any_walked = max(1, found.collection.size), False
    for number, terms in enumerate(sets):
        share = float(np.prod([min(1.0, found.frequency[term] / size) for term in terms]))
        walked = _walked(share, size, most)
        newest, wanted = _holding(terms, any_of=False, walked=walked)
        parts.append(f"SELECT {number}, {joined} FROM ({newest}) newest")  # noqa: S608
        params += [wanted, _since(found, terms, most), most]
        any_walked |= walked
    with _cursor(any_walked) as cursor:
        cursor.execute(" UNION ALL ".join(parts), params)
        rows = cursor.fetchall()
    return [(sets[number], _numbers(ids)) for number, ids in rows]


def _since(found: Words, terms: Sequence[str], most: int) -> int:
    """The id above which these terms are looked for together, so that no walk through them is a long one.

    Terms that never meet would be followed through all memories. Ids are taken to lie evenly between first and last.
    """
    size = max(1, found.collection.size)
    shares = [min(1.0, found.frequency[term] / size) for term in terms]
    rows = min(SPAN * most / float(np.prod(shares)), MOST_WALKED / sum(shares))
    first, last = found.collection.first, found.collection.last
    return 0 if rows >= size else int(last - (last - first) * rows / size)


def _walked(share: float, size: int, most: int) -> bool:
    """Whether on PostgreSQL the newest rows are walked through until `most` of this share are found.

    Else all that hold the terms are taken from the index, and the newest of them. PostgreSQL itself thinks that terms
    meet by chance, and walked through 95,000 rows for two that never do. To pass a row by costs about half of taking
    one.
    """
    return share * share * size > most / 2


def _cursor(walked: bool) -> CursorWrapper:
    """A walk is planned for the terms that are asked for, what is taken from the index need not be."""
    return connection.cursor() if walked else prepared.cursor()


def _holding(terms: Sequence[str], *, any_of: bool, walked: bool) -> tuple[str, str]:
    """(statement for the ids of the newest memories that hold any or all of the terms, which has three parameters: what
    is the first, an id below them all the second, and how many is the third)."""
    if connection.vendor == "postgresql":
        holding = "SELECT memory_id FROM memory_terms WHERE vector @@ %s::tsquery"
        if not walked:  # nothing is pushed past an OFFSET
            holding = f"SELECT memory_id FROM ({holding} OFFSET 0) held WHERE true"  # noqa: S608
        wanted = (" | " if any_of else " & ").join(f"'{term}'" for term in terms)
        return f"{holding} AND memory_id > %s ORDER BY memory_id DESC LIMIT %s", wanted
    statement = (
        "SELECT rowid AS memory_id FROM memory_terms_fts WHERE memory_terms_fts MATCH %s AND rowid > %s "
        "ORDER BY rowid DESC LIMIT %s"
    )
    return statement, (" OR " if any_of else " AND ").join(f'"{term}"' for term in terms)


def _read_among(found: Words, ids: Sequence[int], visible: scope.Where, most: int) -> None:
    """Read the first `most` of these memories that are visible. None of them was read before."""
    if connection.vendor == "postgresql":
        source = (
            "(SELECT given.id FROM unnest(%s::bigint[]) WITH ORDINALITY given (id, place) "  # noqa: S608
            f"JOIN memories ON memories.id = given.id WHERE {visible.sql} ORDER BY given.place LIMIT %s) f "
            "JOIN memory_terms t ON t.memory_id = f.id"
        )
        listed: Any = list(ids)
    else:
        source = (
            "(SELECT memories.id FROM json_each(%s) given "  # noqa: S608
            f"CROSS JOIN memories ON memories.id = given.value WHERE {visible.sql} LIMIT %s) f "
            "CROSS JOIN memory_terms t ON t.memory_id = f.id"
        )
        listed = json.dumps(ids)
    _read_joined(found, source, [listed, *visible.params, most], scope.EVERYTHING, prepared.cursor())


def _read_joined(
    found: Words, source: str, params: Sequence[Any], visible: scope.Where, with_cursor: CursorWrapper
) -> int:
    """Read what `source` (a FROM clause with a `t` of memory_terms) finds. Returns how many are not visible.

    All come as three long texts: hundreds of rows cost more to take from the database than to find.
    """
    inside, values, join = "", [], ""
    if visible != scope.EVERYTHING:
        inside, values = f" FILTER (WHERE {visible.sql})", [*visible.params]
        join = f"{'' if connection.vendor == 'postgresql' else 'CROSS '}JOIN memories ON memories.id = t.memory_id"
    if connection.vendor == "postgresql":
        columns = (
            "string_agg(t.memory_id::text, ',')",
            "string_agg(t.length::text, ',')",
            f"string_agg(t.terms, '{BETWEEN}')",
        )
    else:
        columns = ("group_concat(t.memory_id)", "group_concat(t.length)", f"group_concat(t.terms, '{BETWEEN}')")
    with with_cursor as cursor:
        cursor.execute(
            f"SELECT count(*), {', '.join(column + inside for column in columns)} FROM {source} {join}",  # noqa: S608
            [*values * len(columns), *params],
        )
        count, ids, lengths, texts = cursor.fetchone()
    if not ids:
        return int(count)
    read = _numbers(ids).tolist()
    found.take_joined(read, _numbers(lengths).astype(np.float64), texts)
    return int(count) - len(read)


def _numbers(joined: str | None) -> Ids:
    return np.fromstring(joined or "", dtype=np.int64, sep=",")


def _small(visible: scope.Where, size: int) -> list[int]:
    """The memories of a scope that is small, else none. That one is large is kept, for as long as counts are.

    Of two halves the last is all projects' (`scope.of`): what is found of it by one holds for all.
    """
    if visible == scope.EVERYTHING and size > SMALL_SCOPE:
        return []
    parts = visible.halves[::-1] or (visible,)
    name, now = frequency.database(), time.monotonic()
    for part in (parts[0], visible):
        if now - _large.get((name, part), -1e9) < frequency.RECOUNT:
            return []
    found, of_first = _ids(parts, SMALL_SCOPE + 1)
    if len(found) <= SMALL_SCOPE:
        return found
    if len(_large) > MOST_KEPT:
        _large.clear()
    _large[name, parts[0] if of_first > SMALL_SCOPE else visible] = now
    return []


def _ids(parts: Sequence[scope.Where], most: int) -> tuple[list[int], int]:
    """(the memories of all parts, `most` of them when there are more; how many of these are of the first part)."""
    each = " UNION ALL ".join(
        f"SELECT memories.id, {number} AS part FROM memories WHERE {part.sql}"  # noqa: S608
        for number, part in enumerate(parts)
    )
    joined = "string_agg(id::text, ',')" if connection.vendor == "postgresql" else "group_concat(id)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {joined}, count(*) FILTER (WHERE part = 0) FROM ({each} LIMIT %s) found",  # noqa: S608
            [*(value for part in parts for value in part.params), most],
        )
        ids, of_first = cursor.fetchone()
    found: list[int] = _numbers(ids).tolist()
    return found, of_first


def forget() -> None:
    """Let go of what is kept of the index: another database may stand under the same name."""
    _large.clear()
    frequency.forget()
