"""What can be refused here. A surface turns these into a message, a 4xx or an exit code."""


class MemoriesError(Exception):
    """Base of what the memory store refuses; `code` is stable, the text is for a person, `fix` says what to do."""

    code = "memories_error"
    is_refusal = True

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class InvalidMemory(MemoriesError):
    """A memory's text, category, service, confidence or tags cannot be stored as given."""

    code = "invalid_memory"


class MemoryNotFound(MemoriesError):
    """No memory has this id."""

    code = "memory_not_found"
