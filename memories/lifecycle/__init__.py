"""The lifecycle of stored memories: `rules`, verbs, bulk actions, merge, undo, the sweep."""
