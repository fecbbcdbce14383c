"""Expiry and the decay rule in SQL, set by set: due memories, so many at once, and their change rows. Two dialects.

Parameters are named: most (memories at once), at, at_us (microseconds since the epoch), grace and every
(seconds), step, threshold, inactive, kind, actor, and those of the condition, which `sweep.py` puts in with
format(where=…). A literal percent sign is doubled, and so is a literal brace.
"""

IS_DUE = "SELECT EXISTS (SELECT 1 FROM memories WHERE {where})"

# What is written is the same for each row; `cast` is the database's way from text to its JSON type.
EXPIRE_HISTORY = """
INSERT INTO memory_changes (memory_id, memory_uuid, kind, at, before, after, reason, evidence, actor)
SELECT id, uuid, %(kind)s, %(at)s, %(before)s{cast}, %(after)s{cast}, 'Its time was over.', '{{}}', %(actor)s
FROM memories WHERE id IN (SELECT id FROM memories WHERE {where} ORDER BY id LIMIT %(most)s)
"""
EXPIRE_UPDATE = """
UPDATE memories SET active = %(no)s, inactive_reason = %(inactive)s
WHERE id IN (SELECT id FROM memories WHERE {where} ORDER BY id LIMIT %(most)s)
"""

# PostgreSQL says it in one statement. The rows are locked before they are read, so that what another
# transaction just confirmed is seen as confirmed.
POSTGRESQL = """
WITH due AS (
    SELECT id, updated_at, confidence, decayed_until,
           GREATEST(updated_at + %(grace)s * interval '1 second', decayed_until) AS start
    FROM memories WHERE {where} ORDER BY id LIMIT %(most)s FOR UPDATE
), counted AS (
    SELECT *, floor(extract(epoch FROM %(at)s::timestamptz - start) / %(every)s)::int AS periods FROM due
), taken AS (
    SELECT *, GREATEST(0, round((confidence - periods * %(step)s::float8)::numeric, 6))::float8 AS left_over
    FROM counted
), moved AS (
    UPDATE memories SET
        confidence = taken.left_over,
        decayed_until = taken.start + taken.periods * %(every)s * interval '1 second',
        active = taken.left_over >= %(threshold)s,
        inactive_reason = CASE WHEN taken.left_over >= %(threshold)s THEN '' ELSE %(inactive)s END
    FROM taken WHERE memories.id = taken.id
    RETURNING memories.id, memories.uuid, memories.confidence, memories.decayed_until, memories.active,
              memories.inactive_reason, taken.updated_at, taken.periods,
              taken.confidence AS was, taken.decayed_until AS was_until
), told AS (
    INSERT INTO memory_changes (memory_id, memory_uuid, kind, at, before, after, reason, evidence, actor)
    SELECT id, uuid, %(kind)s, %(at)s,
           jsonb_build_object('confidence', was, 'decayed_until', was_until)
           || CASE WHEN active THEN '{{}}' ELSE '{{"active": true, "inactive_reason": ""}}'::jsonb END,
           jsonb_build_object('confidence', confidence, 'decayed_until', decayed_until)
           || CASE WHEN active THEN '{{}}'
              ELSE jsonb_build_object('active', false, 'inactive_reason', inactive_reason) END,
           periods || ' × ' || (%(step)s)::text || ' taken: not confirmed since '
           || to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') || '.',
           '{{}}', %(actor)s
    FROM moved ORDER BY id
)
SELECT count(*), count(*) FILTER (WHERE NOT active) FROM moved
"""

# SQLite has no writes inside WITH: the due rows are worked out once, into a temporary table. Its times are
# Django's text, `YYYY-MM-DD HH:MM:SS` with `.ffffff` when there are microseconds; here they are whole
# microseconds since the epoch. julianday() is exact to a second only when it is rounded to one, hence the
# fraction apart. A LIMIT, if only of -1, keeps SQLite from folding a subquery into the one around it, where each
# mention of a column would work it out again.
SQLITE_DUE = """
CREATE TEMPORARY TABLE memories_due AS
SELECT id, uuid, updated_at, was, was_until, periods, max(0.0, round(was - periods * %(step)s, 6)) AS confidence,
       datetime(until / 1000000, 'unixepoch')
       || CASE until %% 1000000 WHEN 0 THEN '' ELSE printf('.%%06d', until %% 1000000) END AS decayed_until
FROM (
    SELECT *, start + periods * %(every)s * 1000000 AS until FROM (
        SELECT *, (%(at_us)s - start) / (%(every)s * 1000000) AS periods FROM (
            SELECT *, max(confirmed + %(grace)s * 1000000, coalesce(taken, confirmed)) AS start FROM (
                SELECT id, uuid, updated_at, confidence AS was, decayed_until AS was_until,
                       CAST(round((julianday(substr(updated_at, 1, 19)) - 2440587.5) * 86400) AS INTEGER) * 1000000
                       + CAST(substr(updated_at, 21) AS INTEGER) AS confirmed,
                       CAST(round((julianday(substr(decayed_until, 1, 19)) - 2440587.5) * 86400) AS INTEGER) * 1000000
                       + CAST(substr(decayed_until, 21) AS INTEGER) AS taken
                FROM memories WHERE {where} LIMIT %(most)s
            ) LIMIT -1
        ) LIMIT -1
    ) LIMIT -1
)
"""

SQLITE_HISTORY = """
INSERT INTO memory_changes (memory_id, memory_uuid, kind, at, before, after, reason, evidence, actor)
SELECT id, uuid, %(kind)s, %(at)s,
       CASE WHEN confidence >= %(threshold)s
       THEN json_object('confidence', was, 'decayed_until', replace(was_until, ' ', 'T') || '+00:00')
       ELSE json_object('confidence', was, 'decayed_until', replace(was_until, ' ', 'T') || '+00:00',
                        'active', json('true'), 'inactive_reason', '') END,
       CASE WHEN confidence >= %(threshold)s
       THEN json_object('confidence', confidence, 'decayed_until', replace(decayed_until, ' ', 'T') || '+00:00')
       ELSE json_object('confidence', confidence, 'decayed_until', replace(decayed_until, ' ', 'T') || '+00:00',
                        'active', json('false'), 'inactive_reason', %(inactive)s) END,
       periods || ' × ' || %(step)s || ' taken: not confirmed since ' || substr(updated_at, 1, 10) || '.',
       '{}', %(actor)s
FROM memories_due
"""

SQLITE_UPDATE = """
UPDATE memories SET
    confidence = due.confidence,
    decayed_until = due.decayed_until,
    active = due.confidence >= %(threshold)s,
    inactive_reason = CASE WHEN due.confidence >= %(threshold)s THEN '' ELSE %(inactive)s END
FROM memories_due AS due WHERE memories.id = due.id
"""

SQLITE_COUNT = "SELECT count(*), coalesce(sum(confidence < %(threshold)s), 0) FROM memories_due"
SQLITE_FORGET = "DROP TABLE IF EXISTS temp.memories_due"
