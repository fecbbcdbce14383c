"""What is stored about what is known. QuerySets here read; `store.py` and `lifecycle/` write."""

from memories.models.change import Change, MemoryChange
from memories.models.highest import highest
from memories.models.memory import Inactive, Memory, Source, Verdict
from memories.models.project import Project

__all__ = ["Change", "Inactive", "Memory", "MemoryChange", "Project", "Source", "Verdict", "highest"]
