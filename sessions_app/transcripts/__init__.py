"""Transcripts of sessions, ours and a developer's: find them, read their turns, give new parts to the observer.

`arrivals.see` is the door: it looks at one file and notes what of it is new, once. Must not know what is observed.
"""
