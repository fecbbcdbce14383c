"""What can be refused here. A surface turns these into a message, a 4xx or an exit code."""


class SessionsError(Exception):
    """Base of what the runner refuses; `code` is stable, the text is for a person, `fix` says what to do."""

    code = "sessions_error"
    is_refusal = True

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class InvalidSession(SessionsError):
    """A session cannot be asked for like this."""

    code = "invalid_session"


class SessionNotFound(SessionsError):
    """No session has this id."""

    code = "session_not_found"


class AgentNotFound(SessionsError):
    """No agent has this slug."""

    code = "agent_not_found"


class InvalidStream(SessionsError):
    """A file is no log that is known here."""

    code = "invalid_stream"


class StreamNotFound(SessionsError):
    """A replay agent has no recorded stream to play."""

    code = "stream_not_found"
