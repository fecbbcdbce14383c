"""Run a session: start its process, follow it, ingest its log, close it.

Entry points: `run.run_session` for a queued session, `importer.import_log` for a log from elsewhere. `launch` builds
prompt, files and command (`command`, `agent_mcp`, `schema`: pure), `process` starts and ends processes, `ingest` stores
what the log says (`reader`, `stream`, `markers`, `projection`: pure), `outcome` decides how a run ended (pure).
Must not know pages, requests or django-q2.
"""
