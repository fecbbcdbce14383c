"""What pages and API read of sessions and events: one FilterSet each. Knows no request."""
