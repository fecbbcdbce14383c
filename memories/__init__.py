"""The memory store: what agents know."""

load_ahead = False
"""Whether this process is here to recall: its model is loaded while Django's apps are. Said before they are."""
