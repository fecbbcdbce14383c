"""URL patterns of the pages of agents' memory files."""

from django.urls import path
from django.urls.resolvers import URLPattern

from claudeops.features.agent_files import views

urlpatterns: list[URLPattern] = [
    path("projects/<slug:slug>/agent-files/shared/<int:pk>", views.accept, name="agent-files-accept"),
    path("projects/<slug:slug>/agents/<str:agent>", views.agent_file, name="agent_file"),
    path("projects/<slug:slug>/agents/<str:agent>/conflicts/<int:pk>", views.answer, name="agent-file-answer"),
    path("projects/<slug:slug>/agents/<str:agent>/conflicts/<int:pk>/undo", views.undo, name="agent-file-undo"),
    path("projects/<slug:slug>/agents/<str:agent>/switch", views.switch, name="agent-file-switch"),
    path("projects/<slug:slug>/agents/<str:agent>/text", views.text, name="agent-file-text"),
    path("projects/<slug:slug>/agents/<str:agent>/joins/<int:pk>", views.join, name="agent-file-join"),
    path("projects/<slug:slug>/agents/<str:agent>/lines", views.add, name="agent-file-add"),
    path("projects/<slug:slug>/agents/<str:agent>/lines/<int:pk>", views.edit, name="agent-file-edit"),
    path("projects/<slug:slug>/agents/<str:agent>/lines/<int:pk>/<slug:verb>", views.act, name="agent-file-act"),
]
