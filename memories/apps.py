"""The app of the memory store."""

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


class MemoriesConfig(AppConfig):
    name = "memories"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import memories

        if memories.load_ahead:  # first: the model loads while the command is imported
            from memories.embedding import state

            state.begin()
        from memories import checks  # noqa: F401  (registers the system checks)

        post_migrate.connect(_after_migrate, sender=self, dispatch_uid="memories.triggers")


def _after_migrate(using: str, **kwargs: Any) -> None:
    """Create the triggers again: on SQLite a migration that rebuilds the table drops them."""
    from claudeops.lib import hour_counts
    from memories import counts
    from memories.embedding import storage
    from memories.injection import tag_index
    from memories.recall import keyword_index, narratives, pgvector

    storage.make_triggers(connections[using])
    tag_index.keep(connections[using])
    hour_counts.keep(counts.ALL, connections[using])
    narratives.keep(connections[using])
    if using == "default":
        pgvector.try_extension()
    if using == "default" and "memory_terms" in connections[using].introspection.table_names():
        keyword_index.ensure()
