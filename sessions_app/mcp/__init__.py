"""The MCP server: five tools by which a model asks claudeops, within a scope that it cannot choose.

Entry points: `server.build` (stdio, by `manage.py mcp`) and `http.answer` (by the web). `scope` decides what a server
may see, `tools` holds the tools as plain functions. Must not know requests of Django; only what serves MCP imports
`server` and `http`, because the `mcp` package takes a second to import.
"""
