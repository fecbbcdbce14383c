"""Template variables of every page: the version, the person's theme, and whether a note says that this is the demo."""

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from claudeops import __version__
from claudeops.lib.preferences.chosen import preference_of
from claudeops.lib.preferences.models import Theme

DEMO_NOTE_HIDDEN = "demo_note_hidden"
"""The key of the browser session under which a person has hidden the note on the demo."""


def claudeops(request: HttpRequest) -> dict[str, object]:
    hidden = settings.CLAUDEOPS_DEMO and getattr(request, "session", {}).get(DEMO_NOTE_HIDDEN)
    user = getattr(request, "user", None)
    theme = preference_of(user).theme if user is not None else Theme.SYSTEM
    return {
        "demo": settings.CLAUDEOPS_DEMO and not hidden,
        "version": __version__,
        "theme": "" if theme == Theme.SYSTEM else theme,
        "zone": timezone.get_current_timezone_name(),
    }
