"""The readable log of sessions: its entries for pages, and their pruning. The raw log is the runner's."""
