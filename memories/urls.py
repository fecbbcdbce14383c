"""The dashboard's addresses of what is known: memories, their pages and their fragments."""

from django.urls import path
from django.urls.resolvers import URLPattern

from memories.views import bulk, memories, memory

urlpatterns: list[URLPattern] = [
    path("memories", memories.memories, name="memories"),
    path("memories/rows", memories.rows, name="memories-rows"),
    path("memories/bulk", bulk.bulk, name="memories-bulk"),
    path("memories/undo/<int:change>", bulk.undo, name="memories-undo"),
    path("memories/<int:pk>", memory.memory, name="memory"),
    path("memories/<int:pk>/row", memory.row, name="memory-row"),
    path("memories/<int:pk>/undo/<int:change>", memory.undo, name="memory-undo"),
]
