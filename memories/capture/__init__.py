"""What an agent's text says that is worth keeping: pure parsers and the gate. Knows no database."""
