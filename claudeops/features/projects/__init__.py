"""The pages of projects: their memories, sessions and agents together, so that they stand above both apps.

`urls` is the door. What a project is and how it changes is in `memories.lifecycle.projects`.
"""
