"""Curate what is known: reflection, triage of proposals, MEMORY.md in git, and the nightly maintenance.

It knows no surface and no session's log.
"""
