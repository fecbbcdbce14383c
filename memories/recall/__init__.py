"""Finding the right memory: `recall(query)` answers with hits and a trace of why they are there.

Text in, values out; knows nothing of a request, a session's process or a prompt.
"""

from memories.recall.engine import recall
from memories.recall.record import mark, unmark
from memories.recall.values import ANY_AGENT, ANY_PROJECT, Asker, Filters, Hit, InvalidRecall, Parts, Recall, Trace

__all__ = [
    "ANY_AGENT",
    "ANY_PROJECT",
    "Asker",
    "Filters",
    "Hit",
    "InvalidRecall",
    "Parts",
    "Recall",
    "Trace",
    "mark",
    "recall",
    "unmark",
]
