"""URL patterns of the memories pages and their fragments."""

from django.urls import path
from django.urls.resolvers import URLPattern

from memories.web import (
    bulk,
    change_list,
    desk,
    history,
    memories,
    memory,
    recall,
    review,
    surfacing,
    telemetry,
    transcripts,
    undo,
)

urlpatterns: list[URLPattern] = [
    path("desk", desk.desk, name="desk"),
    path("desk/nearest/<int:pk>", desk.nearest, name="desk-nearest"),
    path("desk/decide", desk.decide, name="desk-decide"),
    path("desk/undo/<slug:kind>/<str:token>", desk.undo, name="desk-undo"),
    path("memories", memories.memories, name="memories"),
    path("memories/rows", memories.rows, name="memories-rows"),
    path("memories/bulk", bulk.bulk, name="memories-bulk"),
    path("memories/changes", change_list.changes, name="memory-changes"),
    path("memories/surfacing", surfacing.surfacing, name="memory-surfacing"),
    path("memories/undo", undo.undo_all, name="memories-undo-all"),
    path("memories/undo/<int:change>", bulk.undo, name="memories-undo"),
    path("memories/inbox", desk.inbox),
    path("memories/recall", recall.recall, name="recall"),
    path("memories/recall/mark", recall.mark, name="recall-mark"),
    path("memories/recall/asked", recall.asked, name="recall-asked"),
    path("memories/<int:pk>", memory.memory, name="memory"),
    path("memories/<int:pk>/similar", memory.similar, name="memory-similar"),
    path("memories/<int:pk>/row", memory.row, name="memory-row"),
    path("memories/<int:pk>/history", memory.history, name="memory-history"),
    path("memories/<int:pk>/changes/<int:change>", history.change, name="memory-change"),
    path("memories/<int:pk>/approve", review.approve, name="memory-approve"),
    path("memories/<int:pk>/reject", review.reject, name="memory-reject"),
    path("memories/<int:pk>/deactivate", review.deactivate, name="memory-deactivate"),
    path("memories/<int:pk>/confirm", review.confirm, name="memory-confirm"),
    path("memories/<int:pk>/activate", review.activate, name="memory-activate"),
    path("memories/<int:pk>/undo/<int:change>", memory.undo, name="memory-undo"),
    path("telemetry", telemetry.telemetry, name="telemetry"),
    path("telemetry/<int:pk>", telemetry.telemetry_record, name="telemetry-record"),
    path("transcripts", transcripts.transcripts, name="transcripts"),
    path("transcripts/<int:pk>", transcripts.transcript, name="transcript"),
    path("transcripts/<int:pk>/live", transcripts.live, name="transcript-live"),
    path("transcripts/<int:pk>/parts/<int:number>/again", transcripts.again, name="transcript-again"),
]
