"""The overview page: its figures, the feed, the health of workers and queues, and its change token."""
