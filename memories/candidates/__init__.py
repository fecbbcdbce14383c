"""Select and relate the candidates of a statement: the known memories to compare it with. Writes index terms alone."""
