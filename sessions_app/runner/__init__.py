"""How a session is carried out: command (pure), process, stream (pure), ingest, outcome (pure), run (the story)."""
