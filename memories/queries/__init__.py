"""What pages, API and commands read of the memories: the list, its filters, the inbox. Knows no request."""
