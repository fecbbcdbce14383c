"""The dashboard's pages of memories. Every input has a form; every change is a verb of the lifecycle."""
