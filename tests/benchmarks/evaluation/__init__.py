"""Evaluate recall and matching on labelled sets, in a scratch database: `python -m tests.benchmarks.evaluation`."""
