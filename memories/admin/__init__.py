"""The Django admin of what is known. Imports no other surface; the sessions' pages are linked by name."""

from memories.admin.change import MemoryChangeAdmin
from memories.admin.memory import MemoryAdmin
from memories.admin.project import ProjectAdmin
from memories.admin.token import ApiTokenAdmin

__all__ = ["ApiTokenAdmin", "MemoryAdmin", "MemoryChangeAdmin", "ProjectAdmin"]
