"""Template variables of every page: the version, and whether a note says that this is the demo."""

from django.conf import settings
from django.http import HttpRequest

from claudeops import __version__

DEMO_NOTE_HIDDEN = "demo_note_hidden"
"""The key of the browser session under which a person has hidden the note on the demo."""


def claudeops(request: HttpRequest) -> dict[str, object]:
    hidden = settings.CLAUDEOPS_DEMO and getattr(request, "session", {}).get(DEMO_NOTE_HIDDEN)
    return {"demo": settings.CLAUDEOPS_DEMO and not hidden, "version": __version__}
