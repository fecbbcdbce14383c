"""The verbs of `manage.py bench`, one module each; `commands/bench.py` lists them."""
