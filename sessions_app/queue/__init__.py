"""The queue of sessions and the schedules of agents. This package is its entry point.

The rows are the queue; a django-q2 task is only a wake-up for a worker, which may come twice or never. Must not know
how a session runs.
"""

from sessions_app.queue.claims import claim
from sessions_app.queue.dispatch import (
    Dispatched,
    ask_elsewhere,
    dispatch,
    enqueue_follow,
    enqueue_learn,
    enqueue_observe,
    enqueue_observe_session,
    enqueue_promote,
    enqueue_sync,
    give_back,
    in_line,
    living_hosts,
    rules_for,
)
from sessions_app.queue.due import reschedule, set_enabled, tick
from sessions_app.queue.requests import (
    may_not_continue,
    may_not_follow,
    request_again,
    request_continue,
    request_retry,
    request_session,
    request_stop,
)

__all__ = [
    "Dispatched",
    "ask_elsewhere",
    "claim",
    "dispatch",
    "enqueue_follow",
    "enqueue_learn",
    "enqueue_observe",
    "enqueue_observe_session",
    "enqueue_promote",
    "enqueue_sync",
    "give_back",
    "in_line",
    "living_hosts",
    "may_not_continue",
    "may_not_follow",
    "request_again",
    "request_continue",
    "request_retry",
    "request_session",
    "request_stop",
    "reschedule",
    "rules_for",
    "set_enabled",
    "tick",
]
