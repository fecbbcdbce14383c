"""The Django admin of what is known. Imports no other surface; the sessions' pages are linked by name."""

from memories.admin.change import MemoryChangeAdmin
from memories.admin.memory import MemoryAdmin
from memories.admin.project import ProjectAdmin

__all__ = ["MemoryAdmin", "MemoryChangeAdmin", "ProjectAdmin"]
