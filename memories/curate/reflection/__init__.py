"""Reflection: recent observations and MEMORY.md go to the reflector, proposals come back."""

from memories.curate.reflection.runs import Done, reflect, reflect_due

__all__ = ["Done", "reflect", "reflect_due"]
