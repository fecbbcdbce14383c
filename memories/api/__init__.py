"""The API of memories. `claudeops/api.py` mounts its routers; routes call domain functions."""

from memories.api.memories import router as memories_router
from memories.api.recall import router as recall_router

ROUTERS = (recall_router, memories_router)  # /memories/search before /memories/{id}

__all__ = ["ROUTERS"]
