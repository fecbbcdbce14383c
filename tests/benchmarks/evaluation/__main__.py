"""Evaluate recall and matching on labelled sets (JSON Lines).

    python -m tests.benchmarks.evaluation matching --pairs FILE
    python -m tests.benchmarks.evaluation recall --memories FILE --queries FILE

docs/recall.md and docs/matching.md say what is measured.
"""

import os
import sys

import django
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "claudeops.settings")
try:
    django.setup()
except ImproperlyConfigured as error:
    raise SystemExit(f"claudeops cannot start: {error}") from None

from tests.benchmarks.evaluation.command import Command

Command().run_from_argv(["python -m", "tests.benchmarks.evaluation", *sys.argv[1:]])
