"""Refusals of this app. A surface turns them into a message, a status 4xx or an exit code."""


class SessionsError(Exception):
    """Base of the refusals. `code` is stable, the text is for people, `fix` says what to do."""

    code = "sessions_error"
    is_refusal = True

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class InvalidSession(SessionsError):
    """A request for a session, a stop or a cooldown is not valid."""

    code = "invalid_session"


class SessionNotFound(SessionsError):
    """No session has this id."""

    code = "session_not_found"


class AgentNotFound(SessionsError):
    """No agent has this slug."""

    code = "agent_not_found"


class InvalidStream(SessionsError):
    """A file is not a log of a known format, or cannot be imported."""

    code = "invalid_stream"


class StreamNotFound(SessionsError):
    """There is no recorded stream to play."""

    code = "stream_not_found"
