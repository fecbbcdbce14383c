"""Replay recorded streams as if the CLI ran: `player` is the process, `pick` chooses the stream."""
