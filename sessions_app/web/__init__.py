"""The dashboard's pages of sessions, events and cooldowns. Every input has a form; every action is a domain verb."""
