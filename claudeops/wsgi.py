"""The WSGI entry point: `gunicorn claudeops.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "claudeops.settings")
application = get_wsgi_application()
