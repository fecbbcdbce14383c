"""The queue of sessions: request, admission, dispatch, claim, and agents' schedules. This package is its entry point.

The rows are the queue. A django-q2 task is only a wake-up for a worker; it may come twice or never.
`admission` decides who goes first and who has to wait, `dispatch` writes hold reasons and sends wake-ups, `claims`
takes a queued session to running by one conditional UPDATE, `due` fires agents' schedules, `tasks` alone imports
django_q. Must not know how a session runs.
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
