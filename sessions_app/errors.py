"""The errors of this app."""

from claudeops.lib.domain_error import DomainError


class SessionsError(DomainError):
    code = "sessions_error"


class InvalidSession(SessionsError):
    """A request for a session, a stop or a cooldown is not valid."""

    code = "invalid_session"


class InvalidBrief(InvalidSession):
    """A field of a session's brief is not valid; `fields` maps its name to what is wrong."""

    code = "invalid_brief"

    def __init__(self, field: str, message: str, fix: str = "") -> None:
        super().__init__(f"{field}: {message}", fix)
        self.fields = {field: message}


class TierDenied(SessionsError):
    """A session of a tier above the highest that its requester may ask for."""

    code = "forbidden"


class SessionNotFound(SessionsError):
    code = "session_not_found"


class EventNotFound(SessionsError):
    code = "event_not_found"


class AgentNotFound(SessionsError):
    code = "agent_not_found"


class InvalidStream(SessionsError):
    """A file is not a log of a known format, or cannot be imported."""

    code = "invalid_stream"


class CannotStore(SessionsError):
    """The data folder or the database cannot be written: the disk is full."""

    code = "cannot_store"


class RawLogOutside(SessionsError):
    """A session's row names a raw log outside the sessions' folder."""

    code = "raw_log_outside"


class StreamNotFound(SessionsError):
    code = "stream_not_found"


class UnknownHook(SessionsError):
    """The address names a hook that the CLI does not have."""

    code = "unknown_hook"


class UnknownCaller(SessionsError):
    """A hook comes with no token, or with one that opens nothing."""

    code = "unknown_token"


class TooManyHooks(SessionsError):
    code = "too_many_hooks"


class InvalidHook(SessionsError):
    """What a hook posted cannot be read."""

    code = "invalid_hook"


class HookTooBig(InvalidHook):
    code = "too_big"


class HookFailed(SessionsError):
    """A handler of a hook failed; the log says how."""

    code = "hook_failed"


class InvalidSettings(SessionsError):
    """A settings file of the CLI cannot be read, or not be written by us; it is left as it is."""

    code = "invalid_settings"
