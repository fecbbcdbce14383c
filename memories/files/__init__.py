"""Agent memory files: what an agent learned, as Markdown in the project's repository, in step with the memories.

The door is `sync.sync_file`. Pure below (document, limits, merge), effects above. Knows no session and no request.
"""
