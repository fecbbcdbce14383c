"""Prompts of sessions. `compose.compose` is the door: frozen inputs in, the text and its sections out.

`brief` (what was asked for), `sections` and `compose` are pure; `render` reads the templates, `digest` the log of the
session that is retried or continued. Must not know how memories are chosen, nor processes.
"""
