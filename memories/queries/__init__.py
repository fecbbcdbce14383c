"""Read the memories for pages, API and commands: the list, its filters, the inbox. Knows no request."""
