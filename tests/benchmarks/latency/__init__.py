"""Latency of recall and remember() by number of memories: `python -m tests.benchmarks.latency`."""
