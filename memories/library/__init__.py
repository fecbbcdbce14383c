"""The library: what was done (journal), decided, written elsewhere and found, beside the memories.

Files in git are what lasts; the tables are an index of them that can be made again. Nothing is injected by itself.
"""
