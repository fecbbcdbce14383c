"""FilterSets of sessions and events, for pages and the API."""
