"""What can be refused here. A surface turns these into a message, a 4xx or an exit code."""


class MemoriesError(Exception):
    """Base of what the memory store refuses; `code` is stable, the text is for a person."""

    code = "memories_error"


class InvalidMemory(MemoriesError):
    """A memory's text, category, service, confidence or tags cannot be stored as given."""

    code = "invalid_memory"


class MemoryNotFound(MemoriesError):
    """No memory has this id."""

    code = "memory_not_found"
