"""The ASGI entry point: `uvicorn claudeops.asgi:application`, or any ASGI server."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "claudeops.settings")
application = get_asgi_application()
