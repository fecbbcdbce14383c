"""The API of memories. `claudeops/api.py` mounts the routers of `recall` and `memories`; routes call domain functions.

`serializers` is for commands and MCP as well, so this package imports nothing: they do without django-ninja.
"""
