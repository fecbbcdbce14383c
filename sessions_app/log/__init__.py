"""The readable log of sessions: read a page of it (`entries`), delete it when it is old (`pruning`).

The runner writes it (`runner.ingest`). Must not know requests, nor how a session runs.
"""
