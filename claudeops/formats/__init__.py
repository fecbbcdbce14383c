"""How the admin writes times; the dashboard shows ages, with the exact time on hover."""
