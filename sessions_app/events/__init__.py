"""What people do with events."""
