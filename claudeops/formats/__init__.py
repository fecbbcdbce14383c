"""Time formats of the admin."""
