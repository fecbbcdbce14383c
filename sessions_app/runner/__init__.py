"""Run a session: start its process, follow it, ingest its log, close it.

Entry points: `run.run_session` for a queued session, `importer.import_log` for a log from elsewhere. Must not know
pages, requests or django-q2.
"""
