"""The pages of agents' memory files: files, memories and sessions together, so that they stand above both apps.

`urls` is the door. How a file is read and written is in `memories.files`.
"""
