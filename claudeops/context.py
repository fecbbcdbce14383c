"""Template variables of every page: the version, and whether this is the demo."""

from django.conf import settings
from django.http import HttpRequest

from claudeops import __version__


def claudeops(request: HttpRequest) -> dict[str, object]:
    return {"demo": settings.CLAUDEOPS_DEMO, "version": __version__}
