"""Who asks from outside, and what they may see and do: permissions, API tokens, bearer authentication."""
