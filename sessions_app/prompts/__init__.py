"""The prompt of a session and the text appended to its system prompt."""
