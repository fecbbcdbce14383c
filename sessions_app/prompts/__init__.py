"""Prompts of sessions: the prompt itself (stdin), and the text appended to the system prompt.

Entry points: `render.render_prompt` and `render.append_text`. Must not know how memories are chosen, nor processes.
"""
