"""URL patterns of the dashboard's sessions, events and cooldowns, and of their fragments."""

from django.urls import path
from django.urls.resolvers import URLPattern

from sessions_app.web import (
    agents,
    ask,
    bulk,
    compare,
    cooldowns,
    events,
    hooks,
    log,
    mcp,
    memory_sessions,
    session,
    sessions,
)

urlpatterns: list[URLPattern] = [
    path("sessions", sessions.SessionList.as_view(), name="sessions"),
    path("sessions/bulk", bulk.bulk, name="sessions-bulk"),
    path("sessions/again/undo/<str:ids>", bulk.undo, name="sessions-again-undo"),
    path("sessions/hours", sessions.hours, name="sessions-hours"),
    path("sessions/rows", sessions.SessionList.as_poll(), name="sessions-rows"),
    path("sessions/<int:pk>", session.session, name="session"),
    path("sessions/<int:pk>/compare", compare.session_compare, name="session-compare"),
    path("sessions/<int:pk>/live", session.session_live, name="session-live"),
    path("sessions/<int:pk>/stop", session.stop, name="session-stop"),
    path("sessions/<int:pk>/again", session.again, name="session-again"),
    path("sessions/<int:pk>/retry", session.retry, name="session-retry"),
    path("sessions/<int:pk>/continue", session.continue_, name="session-continue"),
    path("sessions/<int:pk>/hand-over", session.hand_over, name="session-hand-over"),
    path("sessions/<int:pk>/log", log.session_log, name="session-log"),
    path("sessions/<int:pk>/log/raw", log.session_raw, name="session-raw"),
    path("agents/from-template/<slug:slug>", agents.from_template, name="agent-from-template"),
    path("agents/<int:pk>/run", agents.run, name="agent-run"),
    path("agents/<int:pk>/pause", agents.pause, name="agent-pause"),
    path("agents/<int:pk>/resume", agents.resume, name="agent-resume"),
    path("memories/preview", ask.preview),
    path("ask", ask.ask, name="ask"),
    path("memories/<int:pk>/sessions", memory_sessions.told, name="memory-sessions"),
    path("events", events.EventList.as_view(), name="events"),
    path("events/bulk/<int:up_to>", events.change, name="events-bulk"),
    path("events/acknowledge", events.change, {"verb": "acknowledge"}, name="events-acknowledge"),
    path("events/reopen", events.change, {"verb": "reopen"}, name="events-reopen"),
    path("events/undo/<str:at>", events.undo, name="events-undo"),
    path("events/rows", events.EventList.as_poll(), name="events-rows"),
    path("mcp", mcp.mcp, name="mcp"),
    path("hooks/<str:event>", hooks.hooks, name="hooks"),
    path("cooldowns", cooldowns.cooldowns, name="cooldowns"),
    path("cooldowns/rows", cooldowns.rows, name="cooldowns-rows"),
]
