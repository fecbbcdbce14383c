"""Measure recall and remember() on generated memories in a scratch database, on the configured engine.

    python -m tests.benchmarks.latency --sizes 1000,10000,100000,1000000 --runs 200 --out latency.json

Prints a table; --out writes the figures as JSON. docs/benchmarks.md says what is measured.
"""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "claudeops.settings")
# No model is asked over the network, and a start is timed with compiled modules.
os.environ |= {"CLAUDEOPS_MODEL_JUDGE": "", "CLAUDEOPS_MODEL_REWRITER": ""}
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
django.setup()

from tests.benchmarks.latency.measuring import main  # noqa: E402

main(__doc__)
