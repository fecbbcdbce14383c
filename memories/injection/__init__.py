"""The block of memories in a session's prompt. `ops.build` is the door; it reads only."""
