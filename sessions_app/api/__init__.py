"""The HTTP API of sessions, events and cooldowns. `claudeops` mounts `routes.router`."""
