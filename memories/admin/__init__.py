"""The admin of this app."""
