"""The dashboard's pages of memories. Every change is a verb of the lifecycle."""
