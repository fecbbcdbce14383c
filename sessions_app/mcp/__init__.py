"""The MCP server: five tools by which a model uses claudeops, within a scope that it cannot choose.

Entry points: `server.build` (stdio, by `manage.py mcp`) and `http.answer` (by the web). Must not know Django's
requests. Only what serves MCP imports `server` and `http`: the `mcp` package takes a second to import.
"""
