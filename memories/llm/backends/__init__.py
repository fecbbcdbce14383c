"""The backends of models: the Claude Code CLI, HTTP, and recorded answers."""

from memories.llm.backends.base import Backend, Failure, Reply, Request
from memories.llm.backends.claude import ClaudeBackend
from memories.llm.backends.http import HttpBackend, RecordedBackend

__all__ = ["Backend", "ClaudeBackend", "Failure", "HttpBackend", "RecordedBackend", "Reply", "Request"]
