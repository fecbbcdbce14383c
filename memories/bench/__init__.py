"""How right the judgement of the memory store is, measured on sets of lines. Never on the operator's own rows."""
