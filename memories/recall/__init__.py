"""Recall: find the memories that answer a query. `recall(query, filters)` returns hits and a trace of the reasons."""

from memories.recall.filters import ANY_AGENT, ANY_PROJECT, Filters, InvalidRecall
from memories.recall.results import Asker, Hit, Parts, Recall, Trace
from memories.recall.service import Question, ask, recall

__all__ = [
    "ANY_AGENT",
    "ANY_PROJECT",
    "Asker",
    "Filters",
    "Hit",
    "InvalidRecall",
    "Parts",
    "Question",
    "Recall",
    "Trace",
    "ask",
    "recall",
]
