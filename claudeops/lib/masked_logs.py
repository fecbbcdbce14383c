"""A filter for the handlers of Python's logging that masks credentials in messages, exceptions and stack traces.

A full disk or a locked database is no bug: such an exception is one sentence, not a traceback each time.
"""

from __future__ import annotations

import logging

_FORMATTER = logging.Formatter()


class MaskSecrets(logging.Filter):
    """Mask the record's text before it is written. A record whose arguments do not fit its message is left as it is."""

    def filter(self, record: logging.LogRecord) -> bool:
        from claudeops.lib import outage  # here: the settings are not yet read when logging is configured
        from claudeops.lib.secrets import mask  # here: its patterns take long to compile

        try:
            record.msg, record.args = mask(record.getMessage()), None
        except (TypeError, ValueError):  # the handler reports it
            return True
        if record.exc_info and not record.exc_text:
            found = outage.named_in(record.exc_info[1])
            record.exc_text = found.message if found else _FORMATTER.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = mask(record.exc_text)
        if record.stack_info:
            record.stack_info = mask(record.stack_info)
        return True
