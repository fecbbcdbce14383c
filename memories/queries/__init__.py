"""Read the memories for pages, API and commands: the list, its filters, disagreements. Knows no request."""
