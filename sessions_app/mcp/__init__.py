"""What a model may ask claudeops for while it works: five tools over MCP, within a scope it cannot choose."""
