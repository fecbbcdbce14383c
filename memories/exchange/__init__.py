"""Memories to and from other systems: export and import as JSON Lines. Imports pass the gate."""
