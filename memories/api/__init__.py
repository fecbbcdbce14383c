"""The API of what is known. `claudeops` mounts its router; what a route does is a function below it."""

from memories.api.memories import router

__all__ = ["router"]
