"""The one door to models: `ask(role, instructions, text, shape)` answers, or says why there is no answer."""

from memories.llm.calls import Answer, Reason, Unavailable, Used, ask
from memories.llm.roles import ROLES

__all__ = ["ROLES", "Answer", "Reason", "Unavailable", "Used", "ask"]
