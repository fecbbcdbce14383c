"""The hooks of the Claude Code CLI: what it posts is answered at one door.

`door.answer` is the entry point. A handler is a function in a module of its own, registered for its event in `answers`:
one that answers the CLI, or one that a worker calls later. Must not know how a request looks.
"""
