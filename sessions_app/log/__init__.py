"""The readable log of sessions, which `runner.ingest` writes. Must not know requests, nor how a session runs."""
