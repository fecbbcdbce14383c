"""Recall: find the memories that answer a question. `recall(query, filters)` returns hits and a trace of the reasons.

`service` is the door; `keyword_search.search` and `vector_search.nearest` serve other rooms as well. The package knows
no request, no session's process and no prompt.
"""

from memories.recall.filters import ANY_AGENT, ANY_PROJECT, Filters, InvalidRecall
from memories.recall.results import Asker, Hit, Parts, Recall
from memories.recall.service import Question, ask, recall
from memories.recall.trace import Trace

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
