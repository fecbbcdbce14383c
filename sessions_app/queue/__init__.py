"""The queue of sessions. The rows are the queue; django-q2's tasks are only wake-ups that may come twice or never.

    wake-up   a task that makes a worker take the first session in line
    hold      why a queued session may not start yet, in words, on its row
    dispatch  going over the queue: write the holds, send wake-ups for the rest
    claim     queued → running, by one conditional UPDATE
    firing    an agent's schedule coming due

Only `wakeups` imports django_q. Knows nothing of how a session runs.
"""

from sessions_app.queue.admission import hold_reason_for
from sessions_app.queue.claims import claim
from sessions_app.queue.dispatch import Dispatched, dispatch, enqueue_follow, give_back, in_line, reap_elsewhere
from sessions_app.queue.due import reschedule, tick
from sessions_app.queue.requests import request_again, request_session, request_stop

__all__ = [
    "Dispatched",
    "claim",
    "dispatch",
    "enqueue_follow",
    "give_back",
    "hold_reason_for",
    "in_line",
    "reap_elsewhere",
    "request_again",
    "request_session",
    "request_stop",
    "reschedule",
    "tick",
]
