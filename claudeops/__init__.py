"""The project: settings, URLs, the admin site. The only package that knows both apps."""

import os

__version__ = "0.2.0"

# The product of a query with some thousand vectors is too small to split: with two OpenBLAS threads a recall took
# nearly twice as long. Numpy reads this when it is imported, which is after this package.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
