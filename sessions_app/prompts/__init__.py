"""Prompts of sessions. Must not know how memories are chosen, nor processes."""
