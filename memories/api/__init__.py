"""The API of what is known. `claudeops` mounts its routers; what a route does is a function below it."""

from memories.api.memories import router as memories_router
from memories.api.recall import router as recall_router

ROUTERS = (recall_router, memories_router)  # /memories/search before /memories/{id}

__all__ = ["ROUTERS"]
