"""Statements that come again: planned once on PostgreSQL, in binary, the same cursor as ever on SQLite."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from claudeops.settings import database
from memories import prepared

pytestmark = pytest.mark.django_db


def test_a_statement_says_the_same_as_by_the_usual_cursor():
    with prepared.cursor() as cursor:
        cursor.execute("SELECT %s, 3 %% 2", [7])
        assert cursor.fetchall() == [(7, 1)]


def test_a_refused_statement_is_djangos_error_and_the_next_one_is_answered():
    with pytest.raises(DatabaseError), transaction.atomic(), prepared.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere", [])
    with prepared.cursor() as cursor:
        cursor.execute("SELECT 1", [])
        assert cursor.fetchone() == (1,)


def test_statements_are_seen_by_who_counts_them(django_assert_num_queries):
    with django_assert_num_queries(2) as seen:
        for value in (5, 6):
            with prepared.cursor() as cursor:
                cursor.execute("SELECT %s", [value])
                assert cursor.fetchone() == (value,)
    assert [one["sql"] for one in seen.captured_queries] == ["SELECT 5", "SELECT 6"]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one cursor")
def test_a_logged_statement_gives_the_same_values():
    asked = """SELECT %s::bigint, '\\x00ff'::bytea, '{"a": [1, null]}'::jsonb, now() - now(), TRUE, 1.5::float8"""
    with prepared.cursor() as cursor:
        cursor.execute(asked, [1])
        found = cursor.fetchone()
    with CaptureQueriesContext(connection), prepared.cursor() as cursor:
        cursor.execute(asked, [1])
        assert cursor.fetchone() == found
    assert found[2] == {"a": [1, None]}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite prepares each statement itself")
def test_postgresql_plans_a_statement_once_when_it_comes_again():
    asked = "SELECT %s::bigint + 41, '\\x00ff'::bytea"
    for _ in range(3):
        with prepared.cursor() as cursor:
            cursor.execute(asked, [1])
            assert cursor.fetchone() == (42, b"\x00\xff")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", ["SELECT $1::bigint + 41%"]
        )
        assert cursor.fetchone() == (1,)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no pooler before it")
def test_behind_a_pooler_that_cannot_keep_them_nothing_is_prepared():
    connection.ensure_connection()
    before = connection.connection.prepare_threshold
    connection.connection.prepare_threshold = None  # what ?prepare_threshold=None in DATABASE_URL makes of it
    try:
        for _ in range(3):
            with prepared.cursor() as cursor:
                cursor.execute("SELECT %s::bigint + 43", [1])
                assert cursor.fetchone() == (44,)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", ["SELECT $1::bigint + 43%"]
            )
            assert cursor.fetchone() == (0,)
    finally:
        connection.connection.prepare_threshold = before


def test_a_database_url_says_whether_statements_are_prepared():
    def threshold(url: str) -> object:
        return database(url)["OPTIONS"]["prepare_threshold"]

    assert threshold("postgres://h/n") == 1
    assert threshold("postgres://h/n?prepare_threshold=4") == 4
    assert threshold("postgres://h/n?prepare_threshold=None") is None
    with pytest.raises(ImproperlyConfigured, match="prepare_threshold=never; allowed are a number and None"):
        database("postgres://h/n?prepare_threshold=never")
