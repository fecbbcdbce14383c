"""What happens to a memory after it was stored: arithmetic (`rules`), verbs, the sweep."""
