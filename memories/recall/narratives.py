"""Find narratives of observed sessions by their words. For people: a narrative is no memory, and no prompt is told it.

The index follows the table `segments` by triggers on SQLite, and is an index on an expression on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from memories.models import Segment, Transcript
from memories.models.memory import ANY_AGENT, ANY_PROJECT
from memories.recall.filters import Filters, where
from memories.recall.query import STOP_WORDS, words

MOST = 10
MOST_WORDS = 32

SQLITE_TABLE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS segment_words USING fts5(narrative, content='segments', content_rowid='id', "
    "tokenize='porter unicode61')"
)
_ADD = "INSERT INTO segment_words (rowid, narrative) VALUES (new.id, new.narrative);"
_REMOVE = "INSERT INTO segment_words (segment_words, rowid, narrative) VALUES ('delete', old.id, old.narrative);"
SQLITE_TRIGGERS = {
    "segment_words_on_insert": f"AFTER INSERT ON segments BEGIN {_ADD} END",
    "segment_words_on_delete": f"AFTER DELETE ON segments BEGIN {_REMOVE} END",
    "segment_words_on_update": f"AFTER UPDATE OF id, narrative ON segments BEGIN {_REMOVE} {_ADD} END",
}
VECTOR = "to_tsvector('english', {column})"
POSTGRESQL_INDEX = (
    f"CREATE INDEX IF NOT EXISTS segments_words ON segments USING gin ({VECTOR.format(column='narrative')})"
)

SQLITE_SEARCH = (
    "SELECT segments.id, -bm25(segment_words) AS score FROM segment_words "
    "CROSS JOIN segments ON segments.id = segment_words.rowid "
    "CROSS JOIN transcripts ON transcripts.id = segments.transcript_id "
    "WHERE segment_words MATCH %s AND {scope} ORDER BY score DESC, segments.id DESC LIMIT %s"
)
POSTGRESQL_SEARCH = (
    f"SELECT segments.id, ts_rank({VECTOR.format(column='segments.narrative')}, asked.query) AS score "  # noqa: S608
    "FROM websearch_to_tsquery('english', %s) AS asked(query), segments "
    "JOIN transcripts ON transcripts.id = segments.transcript_id "
    f"WHERE {VECTOR.format(column='segments.narrative')} @@ asked.query AND {{scope}} "
    "ORDER BY score DESC, segments.id DESC LIMIT %s"
)


@dataclass(frozen=True, slots=True)
class Narrative:
    """What happened in a segment, and how well it matches: `score` compares those of one answer, more is better.

    `number` counts within the transcript, `source` names it as the source of a fact does, `at` is when its session was
    (UTC).
    """

    segment: int
    number: int
    transcript: int
    source: str
    narrative: str
    at: datetime
    score: float

    def as_dict(self) -> dict[str, Any]:
        names = ("segment", "number", "transcript", "source", "narrative", "score")
        return {name: getattr(self, name) for name in names} | {"at": self.at.isoformat()}


def keep(connection: Any) -> None:
    """Make the index and its triggers where they are missing, and fill it then; idempotent."""
    if "segments" not in connection.introspection.table_names():
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(POSTGRESQL_INDEX)
            return
        cursor.execute("SELECT name FROM sqlite_master WHERE name = 'segment_words' OR tbl_name = 'segments'")
        there = {name for (name,) in cursor.fetchall()}
        if there.issuperset(("segment_words", *SQLITE_TRIGGERS)):
            return
        cursor.execute(SQLITE_TABLE)
        for name, body in SQLITE_TRIGGERS.items():
            cursor.execute(f"CREATE TRIGGER IF NOT EXISTS {name} {body}")
        # While a trigger was missing, any narrative may have changed.
        cursor.execute("INSERT INTO segment_words (segment_words) VALUES ('rebuild')")


def search(query: str, filters: Filters, *, most: int = MOST) -> tuple[Narrative, ...]:
    """Return the narratives that have words of the query, best first, of the transcripts within the filters.

    With a project those of its sessions alone: a session without one is nobody else's. An agent as in a recall. The
    other filters are about memories.
    """
    runs = (run for run in query.split() if not run.isascii())  # this index has them whole, and not in pairs
    terms = list(dict.fromkeys(word for word in (*runs, *words(query)) if word not in STOP_WORDS))[:MOST_WORDS]
    if not terms:
        return ()
    on_postgresql = connection.vendor == "postgresql"
    scope = where(transcripts_within(filters))
    sql = (POSTGRESQL_SEARCH if on_postgresql else SQLITE_SEARCH).format(scope=scope.sql)
    quoted = (f'"{word.replace(chr(34), " ")}"' for word in terms)
    with connection.cursor() as cursor:
        cursor.execute(sql, [(" or " if on_postgresql else " OR ").join(quoted), *scope.params, most])
        scores = dict(cursor.fetchall())
    rows = Segment.objects.filter(pk__in=scores).select_related("transcript")
    return tuple(_narrative(row, scores[row.pk]) for row in _in_order(list(rows), list(scores)))


def _in_order(rows: Sequence[Segment], ids: Sequence[int]) -> list[Segment]:
    place = {pk: number for number, pk in enumerate(ids)}
    return sorted(rows, key=lambda row: place[row.pk])


def transcripts_within(filters: Filters) -> QuerySet[Transcript]:
    rows = Transcript.objects.all()
    if filters.project != ANY_PROJECT:
        rows = rows.filter(project=filters.project)
    if filters.agent == ANY_AGENT:
        return rows
    return rows.filter(Q(agent=None) | Q(agent=filters.agent) if filters.agent else Q(agent=None))


def _narrative(row: Segment, score: float) -> Narrative:
    transcript = row.transcript
    return Narrative(
        segment=row.pk,
        number=row.number,
        transcript=transcript.pk,
        source=f"{transcript.source_name}-segment-{row.number}",
        narrative=row.narrative,
        at=transcript.last_at or row.created_at,
        score=round(float(score), 4),
    )
