"""Backups of the database, the raw logs and the keys: make, list, verify, restore.

A backup is a folder with a manifest. It is written under another name and renamed when it is complete, so a folder with
a backup's name is a whole one. Files of earlier backups are linked, never files of the data folder: raw logs are masked
in place. Knows nothing of commands and pages.
"""
