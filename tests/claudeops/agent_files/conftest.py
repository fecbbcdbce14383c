"""The repository and the agent's file of `tests/memories/files`, for the pages."""

from tests.memories.files.conftest import learn, project, repository

__all__ = ["learn", "project", "repository"]
