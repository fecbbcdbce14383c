"""Equal failures: what of a reason is compared, and what is found."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.models import Status
from sessions_app.queries.failures import READ, SHOWN, beginning, equal_to, normalised
from tests.support.factories import SessionFactory


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ended at its time limit of 600 seconds.", "Ended at its time limit of 3600 seconds."),
        ("Error (HTTP 500): request req-18 failed", "Error (HTTP 500): request  req-9\nfailed"),
        ("No session 67cde26f-17e1-4348-b9d3-bfd936af657d", "No session 11cde26f-17e1-4348-b9d3-bfd936af6111"),
        (
            "Its host nuc sent nothing since 2026-11-24 03:00 UTC.",
            "Its host nuc sent nothing since 2026-01-01 17:59 UTC.",
        ),
        ("It failed. Escalated to session 7: the disk is full", "It failed."),
    ],
)
def test_numbers_times_and_identifiers_are_not_compared(one, other):
    assert normalised(one) == normalised(other)


def test_other_words_are_another_failure():
    assert normalised("The session reached its limit of turns.") != normalised("The session reached its cost limit.")


@given(st.text(max_size=400))
def test_a_reason_begins_as_it_is_searched_and_is_equal_to_itself(text):
    assert text.startswith(beginning(text)[: len(text)])
    assert normalised(text) == normalised(" ".join(text.split()))


@pytest.mark.django_db
def test_the_latest_equal_ones_are_listed_and_all_are_counted_with_one_query():
    now = timezone.now()
    reason = "Ended at its time limit of {} seconds."
    session, *others = [
        SessionFactory(status=Status.TIMED_OUT, status_reason=reason.format(n * 60), queued_at=now - timedelta(hours=n))
        for n in range(1, 9)
    ]
    SessionFactory(status=Status.TIMED_OUT, status_reason="Ended at its time limit of 5 seconds. It had slept.")
    SessionFactory(status=Status.COMPLETED, status_reason=reason.format(60))
    SessionFactory(status=Status.TIMED_OUT, status_reason=reason.format(60), queued_at=now - timedelta(days=45))
    with CaptureQueriesContext(connection) as asked:
        found = equal_to(session)
    assert len(asked) == 1
    assert found.rows == others[:SHOWN]
    assert found.count == "7"


@pytest.mark.django_db
def test_a_reason_with_the_signs_of_a_pattern_finds_itself_alone():
    one, other = (
        SessionFactory(status=Status.FAILED, status_reason=text) for text in ("100 % of _ full", "100 x of y full")
    )
    assert equal_to(one).rows == equal_to(other).rows == []


@pytest.mark.django_db
def test_what_did_not_fail_has_no_equal_and_asks_nothing():
    with CaptureQueriesContext(connection) as asked:
        assert equal_to(SessionFactory.build(agent=None)).rows == []
    assert len(asked) == 0
    assert READ > SHOWN
