"""The demo agent: recorded streams, played as if the CLI ran. `player` is the process, `pick` says which stream."""
