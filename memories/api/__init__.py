"""The API of memories, mounted by `claudeops/api.py`. Imports nothing: commands use `serializers` without ninja."""
