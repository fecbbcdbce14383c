"""Exchange memories with other systems."""
