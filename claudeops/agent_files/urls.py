"""URL patterns of the pages of agents' memory files."""

from django.urls import path
from django.urls.resolvers import URLPattern

from claudeops.agent_files import views

urlpatterns: list[URLPattern] = [
    path("projects/<slug:slug>/agents/<slug:agent>", views.agent_file, name="agent_file"),
    path("projects/<slug:slug>/agents/<slug:agent>/conflicts/<int:pk>", views.answer, name="agent-file-answer"),
    path("projects/<slug:slug>/agents/<slug:agent>/conflicts/<int:pk>/undo", views.undo, name="agent-file-undo"),
]
