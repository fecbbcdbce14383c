"""The dashboard's pages of sessions, events and cooldowns."""
