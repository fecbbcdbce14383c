"""Access from outside: permissions, API tokens, bearer authentication."""
